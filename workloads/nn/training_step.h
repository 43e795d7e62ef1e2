// One optimizer step of a model on a device: planned, allocated, then run again and again.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/device/device.h"
#include "workloads/nn/memory_plan.h"
#include "workloads/nn/step_options.h"
#include "workloads/ops/backend.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::nn {

// What a micro-batch is made from, in host memory; filled by the caller before a step.
struct Inputs {
  std::span<std::int32_t> ids;       // (B, T) tokens
  std::span<std::int32_t> type_ids;  // (B, T), where the model has token types
  std::span<std::int32_t> lengths;   // (B), where the model masks padding
  std::span<float> images;           // (B, H, W, 3), normalised
  std::span<std::int32_t> targets;   // (B, T) or (B); -100 is ignored
};

struct StepResult {
  double loss = 0;      // mean over the valid targets of all ranks and micro-batches, in nats
  double loss_sum = 0;  // over those targets
  std::int64_t valid = 0;
  std::int64_t correct = 0;
  double gradient_norm = 0;
  bool skipped = false;  // a gradient was not finite: nothing was updated

  // Seconds of this rank; on a GPU by events on it.
  double forward = 0;
  double backward = 0;
  // After backward, waiting for the reduction. Gradients are complete on all ranks at once, so the least of all ranks
  // is what the transfer alone takes, and what this rank waits beyond that is for ranks that arrive later.
  double exposed_communication = 0;
  double optimizer = 0;
  // While the host did what step() was given to do, the device had ended the step: seconds it waited.
  double idle = 0;
  double communication = 0;      // of the reducer's thread, in collective calls
  double communication_cpu = 0;  // the CPU's share of them
};

// A named part of what training must remember, in canonical layout; for checkpoints and golden files.
struct StatePart {
  std::string name;  // "weights/block.0.norm1.weight", "moment1/...", "running_mean/...", "step"
  DType dtype;
  std::vector<std::int64_t> shape;
  void* data = nullptr;  // host memory, or the device's: copy with Device::copy
  std::size_t bytes = 0;
};

// Loss is the sum over valid targets divided by the global valid count; gradients reduce as sums.
class TrainingStep {
 public:
  // Plans; keeps references to `device` and `comm`, not to `model`. Throws UsageError where the model cannot be built
  // so (a dtype that the device lacks, with its reason).
  TrainingStep(const Model& model, const StepOptions& options, Device& device, std::shared_ptr<ops::Backend> backend,
               Communicator& comm);
  ~TrainingStep();

  const MemoryPlan& memory() const;
  // What ran each op, for the record's labels: "conv brgconv:avx512_core; matmul brg:avx512_core".
  std::string implementations() const;
  // Which of several ways some of them chose by trial.
  std::string choices() const;
  // Whether a step from the same state, with the same inputs, leaves the same bits again on this rank. The loss of its
  // forward pass is the same in any case.
  bool repeats() const;

  // Throws Error with the planned bytes by term where they do not fit.
  void allocate();
  // Weights from f(seed, parameter's name, index), the same on every rank.
  void initialise(std::uint64_t seed);

  // Where the batch to come is written, in host memory.
  Inputs inputs(std::int64_t micro_batch);
  // Sends what inputs() hold towards a device with memory of its own, beside what it is doing; the next step takes it,
  // and inputs() may be filled for the one after. Without it step() does so itself.
  void send_ahead();
  // As if nothing had been sent ahead.
  void forget_ahead();
  // Runs the micro-batches, reduces over the ranks (unless told not to: for the measure of exposed communication),
  // clips and updates. Opens the spans forward, backward, exposed_communication, optimizer. From the second step on a
  // GPU replays a graph; with `meanwhile` the host makes use of the time until the device has ended, there alone.
  StepResult step(double learning_rate, bool reduce = true, const std::function<void()>& meanwhile = {});
  // "captured", or "eager: " and why; empty where streams run inline.
  std::string graph() const;
  // Forward alone over inputs(0), batch norm by its running statistics; of this rank alone, so that loss_sum, valid and
  // correct can be added up over batches and ranks.
  StepResult evaluate();
  // The first tensor of the last step that is not finite, found by running it again with probes: "block.3.mlp.out".
  std::string first_non_finite();

  float loss_scale() const;
  // Everything that decides the steps to come; may be written to between steps. Valid after allocate().
  std::vector<StatePart> state();
  // The gradients of the last step (of the mean loss, reduced), for tests.
  std::vector<StatePart> gradients();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::nn
