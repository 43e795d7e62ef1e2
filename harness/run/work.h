// What a plan asks for once on each host or group of hosts.
#pragma once

#include "harness/plan/plan.h"
#include "harness/record/record.h"

#include <cstdint>
#include <string>

namespace assay {

struct Work {
  std::string key;
  int ranks = 1;
  std::uint64_t seed = 0;
  auto operator<=>(const Work&) const = default;
};

inline Work work_of(const PlannedCase& planned) { return {planned.key, planned.ranks, planned.seed}; }
inline Work work_of(const Record& record) { return {record.key, record.world_ranks, record.seed}; }

}  // namespace assay
