// Plans: JSON files that name families and lists of parameter values, which expand to their cross product.
#pragma once

#include "harness/plan/family.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace assay {

// Changes that a plan, or one of its entries, makes to the protocol; absent members change nothing.
struct ProtocolOverrides {
  std::optional<double> max_seconds;
  std::optional<double> warmup_seconds;
  std::optional<double> target_relative_ci;
  std::optional<int> min_samples;
  std::optional<std::string> data;

  static void members(auto& self, auto& io) {
    io.sparse("max_seconds", self.max_seconds), io.sparse("warmup_seconds", self.warmup_seconds);
    io.sparse("target_relative_ci", self.target_relative_ci), io.sparse("min_samples", self.min_samples);
    io.sparse("data", self.data);
  }

  // Changes a Protocol, or the overrides of an outer level.
  template <typename T>
  void apply(T& changed) const {
    if (max_seconds) changed.max_seconds = *max_seconds;
    if (warmup_seconds) changed.warmup_seconds = *warmup_seconds;
    if (target_relative_ci) changed.target_relative_ci = *target_relative_ci;
    if (min_samples) changed.min_samples = *min_samples;
    if (data) changed.data = *data;
  }
};

struct PlannedCase {
  const Family* family = nullptr;
  Params params;
  std::string key;
  int ranks = 1;
  std::uint64_t seed = 0;
  ProtocolOverrides protocol;
  double timeout_seconds = 0;  // 0: derived from the estimate
  std::string sweep;           // the parameter whose values are swept; empty: none
  std::string unfit;           // why this end of a sweep does not fit: it is skipped
  Estimate estimate;
  double estimated_seconds = 0;
};

struct Plan {
  std::string name;
  std::map<std::string, std::string> labels;  // added to every record
  std::vector<PlannedCase> cases;
  std::vector<std::string> remarks = {};  // how each model that was named is measured
  // The plan as run.json keeps it, without estimates, which depend on the machine. Equal plans give equal JSON.
  Json expanded() const;
};

// The plan in a run.json. Throws UsageError if this build does not know one of its families or parameters.
Plan plan_from_expanded(const Json& expanded, const std::string& source, std::span<const Family> families, int cpus,
                        DeviceKind device);

// Whether two expanded plans have equal cases; names and timeouts may differ.
bool same_work(const Json& expanded_a, const Json& expanded_b);

// The parts of the command line that choose and change a plan.
struct PlanRequest {
  std::vector<std::string> targets;  // plans, files or families; "param=v1,v2" is the last family's
  std::vector<std::string> sets;     // family.param=v1,v2,...
  std::string filter;                // ECMAScript regex searched in keys
  std::vector<int> ranks;            // --ranks; empty: the plan's
  DeviceKind device = DeviceKind::cpu;
  std::filesystem::path configs;  // folder that holds plans/
  std::optional<double> timeout_seconds;
};

// Limits of this machine, or of the hosts of a run.
struct PlanLimits {
  std::size_t max_cases = 100000;
  std::uint64_t memory_bytes = 0;      // memory of this machine (or GPU), shared by the ranks of a case; 0: unknown
  std::uint64_t gpu_memory_bytes = 0;  // of the smallest GPU; 0: unknown
  int cpus = 1;
  // World sizes of families that communicate, if neither plan nor --ranks names any; empty: 1.
  std::vector<int> world_sizes = {};
  std::function<int(int ranks)> ranks_per_host = {};  // the most on one host in a world of that size; null: all
};

// Returns the cases in the order of the targets and their entries. Cases with equal key, ranks and seed run once, as in
// the first entry. A parameter that the device lacks is checked, then left out, so that one plan serves CPU and GPU; a
// family that the device cannot run is kept: its cases become skips.
// Throws UsageError that lists every error of a file, each with file, JSON pointer and nearest valid name.
Plan expand_plan(const PlanRequest& request, std::span<const Family> families, const PlanLimits& limits);

}  // namespace assay
