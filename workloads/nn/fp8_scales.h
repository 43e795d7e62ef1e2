// The scales of what a step rounds to 8 bits: how they begin, how they move on at each step's end, what is remembered.
#pragma once

#include "harness/comm/communicator.h"
#include "workloads/nn/step_memory.h"
#include "workloads/nn/training_step.h"

#include <vector>

namespace assay::nn {

class Fp8Scales {
 public:
  // All must outlive it. Of a plan that rounds nothing every call does nothing.
  Fp8Scales(const StepPlan& plan, const StepMemory& memory, Device& device);

  bool any() const { return count_ > 0; }
  // Every scale 1, every history empty.
  void initialise(Stream& stream) const;

  // Of a step. Magnitudes rise from 0; the largest of all ranks are every rank's; at its end scales follow. A magnitude
  // that is not finite sets found_infinity.
  void forget_magnitudes(Stream& stream) const;
  void all_reduce(Communicator& comm, Stream& stream) const;
  void update(ops::StepState* state, Stream& stream) const;

  // Before the first step there is no history: a scale by the magnitude that the tensor has just shown, until update().
  void take_current(std::size_t slot, Stream& stream) const;

  // Scales, what undoes them, and histories.
  std::vector<StatePart> state() const;

 private:
  const StepPlan& plan_;
  ScalePlaces at_;
  Device& device_;
  std::int64_t count_;
};

}  // namespace assay::nn
