// The runs of an acceptance's stages, each of them once: what was done is on disk, and is not done again.
#pragma once

#include "harness/fitness/accept/request.h"
#include "harness/run/trial.h"

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace assay::accept {

class Attempts {
 public:
  // All must outlive this. `dir`: the acceptance's folder.
  Attempts(Request& request, Trials& trials, std::filesystem::path dir);

  // The stage's attempt of that number: run, or run to its end, if it is not done. Each host by itself needs no other,
  // so that those which are lost are left out until the rest are done; a world without one of its hosts is another
  // attempt. `filter`: only keys that match. `without`: a single host is to leave out these of its GPUs. Null if a
  // signal ended it. Throws Error as Trials::run() does.
  const Attempt* make(std::string_view stage, std::size_t number, const std::vector<std::string>& hosts,
                      const std::string& filter = {}, const std::set<int>& without = {});

  // Absent if the attempt left no run.
  std::optional<RunData> take_run(const Attempt& attempt);

 private:
  Trial trial_of(std::string_view stage, const Attempt& attempt, const std::vector<std::string>& hosts,
                 const std::string& filter, const std::set<int>& without) const;

  Request& request_;
  Trials& trials_;
  std::filesystem::path dir_;
  std::map<std::string, RunData> runs_;  // by folder: of trials of this process
};

}  // namespace assay::accept
