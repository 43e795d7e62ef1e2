// Running statistics of batch norms over several ranks: as if one rank had seen all their micro-batches in order.
#pragma once

#include "harness/comm/communicator.h"
#include "workloads/nn/step_memory.h"

#include <memory>
#include <vector>

namespace assay::nn {

// All of it is enqueued; the host looks at nothing.
class RunningAverage {
 public:
  // Allocates; throws UsageError where the backend lacks an op. `plan` and `device` must outlive this.
  RunningAverage(const StepPlan& plan, Device& device, const Communicator& comm);

  // Before the first micro-batch of a step: remembers the statistics, equal on all ranks.
  void before(const StepMemory& memory, Stream& stream);
  // After the last forward pass. A rank's A updates gave r' = d r + s with d = (1 - momentum)^A; those of N ranks one
  // after the other give d^N r + sum over ranks of d^(N - 1 - rank) s.
  void reduce(const StepMemory& memory, Communicator& comm, Stream& stream);

 private:
  // Statistics that lie side by side and have the same momentum: bytes from the start of their region.
  struct Run {
    std::size_t offset;
    std::unique_ptr<ops::Elementwise> own;  // d^later (r' - d r)
    std::unique_ptr<ops::Elementwise> all;  // d^N r + the sum
  };
  std::byte* remembered(std::size_t offset) const { return before_.as<std::byte>() + offset; }

  const StepPlan& plan_;
  Device& device_;
  Buffer before_;
  std::vector<Run> runs_;
};

}  // namespace assay::nn
