// The collective calls of a training step, each queued behind the work that it needs.
#pragma once

#include "workloads/nn/fp8_scales.h"
#include "workloads/nn/reduction.h"
#include "workloads/nn/running_average.h"
#include "workloads/nn/step_memory.h"

#include <memory>
#include <optional>

namespace assay::nn {

class StepCollectives {
 public:
  // All must outlive this. Several ranks.
  StepCollectives(const StepPlan& plan, const StepMemory& memory, Communicator& comm, Device& device);

  // Makes each call once.
  void connect(const Fp8Scales& scales, Stream& compute);

  // Before the first micro-batch of a step.
  void begin(Stream& compute);
  // After the forward pass: the loss and the running statistics.
  void reduce_sums(Stream& compute);
  // Adds up a bucket's gradients: all of them on every rank or, if ranks divide it, a slice on each.
  void reduce(const Bucket& bucket, Stream& compute);
  // Adds up the ranks' results of GradientNorm::sum() at the start of the arena. Used only if ranks divide buckets.
  void reduce_square_sums(Stream& compute);
  void reduce_magnitudes(const Fp8Scales& scales, Stream& compute);
  // Gets the other ranks' slices of what layers read of a bucket that this rank holds whole, else does nothing.
  void gather(const Bucket& bucket, Stream& compute);

  // Reduces a bucket that is whole at `at` while a window lasts. Writes or, after a step's first micro-batch, adds the
  // rank's slice of the sum to what it holds.
  Reduction::Mark reduce(const Window& window, std::byte* at, bool first, Stream& compute);
  // Without `exchange` every slice becomes the rank's own.
  Reduction::Mark gather(const Window& window, std::byte* at, bool exchange, Stream& compute);
  void clear(const Window& window, std::byte* at, Stream& compute) { device_.zero(at, window.bytes, compute); }
  void after(Reduction::Mark mark, Stream& compute) { reduction_->after(mark, compute); }

  // See Reduction.
  void join(Stream& compute) { reduction_->join(compute); }
  double cpu_seconds() const { return reduction_->cpu_seconds(); }
  double wall_seconds() const { return reduction_->wall_seconds(); }

 private:
  const StepPlan& plan_;
  const StepMemory& memory_;
  Device& device_;
  std::optional<RunningAverage> running_;
  std::unique_ptr<Reduction> reduction_;  // last: its thread ends first
};

}  // namespace assay::nn
