// A job from the traces of its ranks: steps that all have, kernels, collectives over ranks, what limits it.
#pragma once

#include "harness/kineto/trace.h"
#include "harness/watch/diagnosis.h"
#include "harness/watch/steps.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::kineto {

// What a GPU does in a step, in seconds; they sum to it. Means over the steps.
struct GpuParts {
  int rank = 0;
  double compute = 0, communication = 0, copies = 0, data = 0, host = 0;

  double step() const { return compute + communication + copies + data + host; }
};

struct Job {
  int world = 1;
  bool gpu = false;
  std::vector<RankTrace> ranks;  // by rank, each with `rank` set; their steps are those that all have
  watch::JobSteps steps;
  std::vector<GpuParts> gpu_parts;  // by rank; empty without GPUs
  std::vector<TracedUse> uses;      // means over ranks; the longest first
  std::vector<TracedCollective> collectives;
  std::vector<watch::Diagnosis> found;
  std::vector<std::string> sound;  // what was looked at and is no cause
  std::vector<std::string> remarks;

  double started() const;  // s since the epoch
  double seconds() const;  // from the first step's start to the last one's end
  GpuParts mean_gpu_parts() const;
};

// Traces of one job, one for each rank; those that do not say their rank count in their order. Throws UsageError "FILE:
// ..." if two are of one rank or of different jobs.
Job job_of(std::vector<RankTrace> traces);

// The rules of watch::diagnose() that a trace can answer, and copy-bound and launch-bound where there are GPUs.
std::vector<watch::Diagnosis> diagnose(const Job& job);
std::vector<std::string> not_the_cause(const Job& job);

}  // namespace assay::kineto
