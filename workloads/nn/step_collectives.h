// The collective calls of a training step, each queued behind the work that it needs.
#pragma once

#include "harness/comm/communicator.h"
#include "workloads/nn/fp8_scales.h"
#include "workloads/nn/reduction.h"
#include "workloads/nn/step_memory.h"

#include <memory>
#include <optional>
#include <vector>

namespace assay::nn {

// Combines batch norm statistics over ranks, as if one rank had seen all their micro-batches in order.

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
