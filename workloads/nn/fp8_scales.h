// The scales of the tensors that a step rounds to 8 bits: initial values, update after each step, saved state.
#pragma once

#include "harness/comm/communicator.h"
#include "workloads/nn/step_memory.h"
#include "workloads/nn/training_step.h"

#include <vector>

namespace assay::nn {

class Fp8Scales {
 public:
  // All must outlive this. If the plan rounds nothing, every call is a no-op.
  Fp8Scales(const StepPlan& plan, const StepMemory& memory, Device& device);

  bool any() const { return count_ > 0; }
  // Sets every scale to 1 and clears every history.
  void initialise(Stream& stream) const;

  // Called in this order during a step: magnitudes start at 0, ranks take the maximum over all ranks, and scales follow
  // at the end. A magnitude that is not finite sets found_infinity.
  void reset_magnitudes(Stream& stream) const;
  void all_reduce(Communicator& comm, Stream& stream) const;
  void update(ops::StepState* state, Stream& stream) const;

  // For use before the first step, when there is no history: scales a tensor by its current magnitude until update().
  void use_current_magnitude(std::size_t slot, Stream& stream) const;

  // Scales, their inverses, and histories.
  std::vector<StatePart> state() const;

 private:
  const StepPlan& plan_;
  ScalePlaces at_;
  Device& device_;
  std::int64_t count_;
};

}  // namespace assay::nn
