// What limits a watched job, what to change, and how much that can bring at most.
#pragma once

#include "harness/watch/steps.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::watch {

// The workers of the job's loaders, as the kernel saw them.
struct Workers {
  int asked = 0;                   // num_workers of the loader with most; 0: the main process loads
  std::optional<double> cpu_each;  // CPUs that each used, 0 to 1; absent: not seen for long enough
  double blocked = 0;              // fraction of looks at which one waited for storage
};

// What is known besides the steps; absent: not measured.
struct Surroundings {
  int ranks = 1;
  int cpus = 1;                            // that the job may use
  int threads = 1;                         // of torch, in each rank
  double job_cpus = 0;                     // in use by the job
  std::optional<double> quota = {};        // CPUs that a cgroup's quota held back, as seconds per second
  std::optional<double> outside = {};      // CPUs in use by others
  std::string outside_names = {};          // who that is
  std::optional<double> memory = {};       // B, the most
  std::optional<double> memory_room = {};  // B, that there can be
  Workers workers = {};
  bool cuda = false;
  bool cpu_times = true;  // whether it is known what CPU time the steps' threads had
};

struct Diagnosis {
  std::string rule;    // data-starved, imbalance, ...
  std::string says;    // what was seen
  std::string change;  // what to do
  double gain = 1;     // at most so many times as fast; 1: unknown
};

// The rules that hold, the one with most to gain first. For a job on GPUs the parts are times of its host, from which
// only waits for data and for ranks are judged.
std::vector<Diagnosis> diagnose(const JobSteps& steps, const Surroundings& around);
// Of these rules, the names of causes that were looked at and are none: "memory (6.1 of 31 GiB)".
std::vector<std::string> not_the_cause(const JobSteps& steps, const Surroundings& around);

}  // namespace assay::watch
