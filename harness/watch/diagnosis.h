// What limits a watched job, what to change, and how much that can bring at most.
#pragma once

#include "harness/watch/gpus.h"
#include "harness/watch/places.h"
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

// What a smaller GPU must have, so that the job goes on as it does.
struct SmallerGpu {
  std::string name;  // of the GPUs it has now
  int count = 0;     // of them
  double bytes = 0;  // memory of each
  double share = 0;  // of the speed of those it has
  std::string dtype = {};
};
// The cheapest that has it.
struct CheapestGpu {
  bool own = false;  // the kind that the job has
  std::string text;  // "g6.xlarge (l4) at 0.80 USD/h holds it"
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
  bool cpu_times = true;   // whether it is known what CPU time the steps' threads had
  bool gpu_parts = false;  // whether the parts are times of the GPUs
  GpuUse gpus = {};
  std::vector<RankPlace> places = {};
  std::optional<double> cpus_p95 = {};       // of the CPUs that it may use, the fraction in use
  std::optional<CheapestGpu> cheapest = {};  // where smaller_gpu() is enough
};

struct Diagnosis {
  std::string rule;    // data-starved, imbalance, ...
  std::string says;    // what was seen
  std::string change;  // what to do
  double gain = 1;     // at most so many times as fast; 1: unknown
};

// The fraction from which the shipped rule of diagnosis (configs/diagnosis/rules.json) warns of this evidence, so that
// `assay diagnose` judges the record by the same. Throws UsageError if there is no such rule.
double warns_from(const char* rule, const char* evidence);

// The rules that hold, the one with most to gain first. Where the parts of a job on GPUs are times of its host, only
// waits for data and for ranks are judged.
std::vector<Diagnosis> diagnose(const JobSteps& steps, const Surroundings& around);
// Of these rules, the names of causes that were looked at and are none: "memory (6.1 of 31 GiB)".
std::vector<std::string> not_the_cause(const JobSteps& steps, const Surroundings& around);

}  // namespace assay::watch
