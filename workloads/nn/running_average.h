// Combines batch norm statistics over ranks, as if one rank had seen all their micro-batches in order.
#pragma once

#include "harness/comm/communicator.h"
#include "workloads/nn/step_memory.h"

#include <memory>
#include <vector>

namespace assay::nn {

// Enqueues its work and never waits for the device.
class RunningAverage {
 public:
  // Allocates; throws UsageError if the backend lacks an op. `plan` and `device` must outlive this.
  RunningAverage(const StepPlan& plan, Device& device, const Communicator& comm);

  // Call before the first micro-batch of a step: saves the statistics, which are equal on all ranks.
  void before(const StepMemory& memory, Stream& stream);
  // Call after the last forward pass. The A updates of one rank give r' = d r + s with d = (1 - momentum)^A; those of N
  // ranks in sequence give d^N r + sum over ranks of d^(N - 1 - rank) s.
  void reduce(const StepMemory& memory, Communicator& comm, Stream& stream);

 private:
  // Adjacent statistics with the same momentum.
  struct Run {
    std::size_t offset;                     // in bytes, from the start of their region
    std::unique_ptr<ops::Elementwise> own;  // d^later (r' - d r)
    std::unique_ptr<ops::Elementwise> all;  // d^N r + the sum
  };
  std::byte* saved(std::size_t offset) const { return before_.as<std::byte>() + offset; }

  const StepPlan& plan_;
  Device& device_;
  Buffer before_;
  std::vector<Run> runs_;
};

}  // namespace assay::nn
