// Levels of an acceptance: files that name the plans of each stage and how their figures are compared.
#pragma once

#include "harness/device/device.h"

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace assay::accept {

struct Level {
  std::string name;  // of the file, without folder and .json
  std::filesystem::path file;
  std::string description;
  std::map<std::string, std::vector<std::string>> plans;  // by stage: host, pairs, collectives, training
  std::string fleet;                                      // floors of hosts against their median; empty: none
  int cpu_ranks = 1;                                      // that a host takes on CPUs; on GPUs one for each of them
  double pair_share = 0.6;                                // of the median pair, below which a link is slow
  std::map<std::string, std::string> not_run;             // by check: why this level does not run it
  std::set<std::string> required;  // checks of which each host must have a result; unless named, the stages with plans
};

// The level of this name in configs/accept, or the file. Plans are files beside it, or shipped ones. Throws UsageError:
// no such level, with the nearest; every mistake of the file.
Level read_level(const std::string& word, DeviceKind device);

// A hash over the level's file and the plans and floors that it names: equal work has equal hashes.
std::string hash_of(const Level& level);

}  // namespace assay::accept
