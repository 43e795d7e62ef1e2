// Running statistics of batch norms over several ranks: as if one rank had seen all their micro-batches in order.
#pragma once

#include "harness/comm/communicator.h"
#include "workloads/nn/step_memory.h"

#include <vector>

namespace assay::nn {

class RunningAverage {
 public:
  // Both must outlive this.
  RunningAverage(const StepPlan& plan, Device& device) : plan_(plan), device_(device) {}

  // Before the first micro-batch of a step: remembers the statistics, equal on all ranks.
  void before(const StepMemory& memory, Stream& stream);
  // After the last forward pass. A rank's A updates gave r' = d r + s with d = (1 - momentum)^A; those of N ranks one
  // after the other give d^N r + sum over ranks of d^(N - 1 - rank) s.
  void reduce(const StepMemory& memory, Communicator& comm, Stream& stream);

 private:
  const StepPlan& plan_;
  Device& device_;
  std::vector<std::byte> before_, after_;
  std::vector<double> old_, now_;
};

}  // namespace assay::nn
