// Ends sweeps over micro-batches two doublings after their knee: what follows takes ever longer and says nothing new.
#pragma once

#include "harness/record/record.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace assay {

class SweepStops {
 public:
  // A case that has run; others than those of a sweep over micro-batches are passed over.
  void learn(const Record& record);
  // Why the case with this key and sweep on so many ranks need not run; nothing if it must.
  std::optional<std::string> past(const std::string& key, const std::string& sweep, int ranks) const;

 private:
  std::map<std::string, std::map<std::int64_t, std::optional<double>>> rates_;  // by the rest of the key, then value
};

}  // namespace assay
