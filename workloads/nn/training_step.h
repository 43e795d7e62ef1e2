// One optimizer step of a model on a device: planned, allocated, then run again and again.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/device/device.h"
#include "workloads/nn/model.h"
#include "workloads/ops/backend.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::nn {

enum class Checkpointing { none, full };

struct StepOptions {
  Precision precision;
  BatchShape batch;             // of one micro-batch
  std::int64_t accumulate = 1;  // micro-batches a step
  Checkpointing checkpointing = Checkpointing::none;
  ops::OptimizerKind optimizer = ops::OptimizerKind::adamw;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double momentum = 0.9;
  double weight_decay = 0;               // of the parameters that take part
  double smoothing = 0;                  // of labels
  double max_norm = 0;                   // 0: gradients are not clipped
  std::int64_t bucket_bytes = 25 << 20;  // of gradients reduced at once
};

// Planned bytes by what they are for; known before anything is allocated.
struct MemoryPlan {
  std::uint64_t weights = 0;  // masters, copies for computing, packed forms, running statistics
  std::uint64_t gradients = 0;
  std::uint64_t optimizer = 0;    // moments
  std::uint64_t activations = 0;  // the arena's peak, inputs included
  std::uint64_t workspace = 0;
  std::uint64_t total() const { return weights + gradients + optimizer + activations + workspace; }
};

// What a micro-batch is made from, in host memory; filled by the caller before a step.
struct Inputs {
  std::span<std::int32_t> ids;       // (B, T) tokens
  std::span<std::int32_t> type_ids;  // (B, T), where the model has token types
  std::span<std::int32_t> lengths;   // (B), where the model masks padding
  std::span<float> images;           // (B, H, W, 3), normalised
  std::span<std::int32_t> targets;   // (B, T) or (B); -100 is ignored
};

struct StepResult {
  double loss = 0;  // mean over the valid targets of all ranks and micro-batches, in nats
  std::int64_t valid = 0;
  std::int64_t correct = 0;
  double gradient_norm = 0;
  bool skipped = false;          // a gradient was not finite: nothing was updated
  double communication_cpu = 0;  // CPU seconds of the reducer's thread
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
  // Plans. Throws UsageError where the model cannot be built so (a dtype that the device lacks, with its reason).
  TrainingStep(const Model& model, const StepOptions& options, Device& device, std::shared_ptr<ops::Backend> backend,
               Communicator& comm);
  ~TrainingStep();

  const MemoryPlan& memory() const;
  // What ran each op, for the record's labels: "conv brgconv:avx512_core; matmul brg:avx512_core".
  std::string implementations() const;

  // Throws Error with the planned bytes by term where they do not fit.
  void allocate();
  // Weights from f(seed, parameter's name, index), the same on every rank.
  void initialise(std::uint64_t seed);

  Inputs inputs(std::int64_t micro_batch);
  // Runs the micro-batches, reduces over the ranks (unless told not to: for the measure of exposed communication),
  // clips and updates. Opens the spans forward, backward, exposed_communication, optimizer.
  StepResult step(double learning_rate, bool reduce = true);
  // Forward alone over inputs(0), batch norm by its running statistics; sums over this rank.
  StepResult evaluate();
  // The first tensor of the last step that is not finite, found by running it again with probes: "block.3.mlp.out".
  std::string first_non_finite();

  float loss_scale() const;
  // Everything that decides the steps to come. Valid after allocate().
  std::vector<StatePart> state();
  // To be called after state() was written to: packed forms are made anew.
  void state_changed();
  // The gradients of the last step, for tests.
  std::vector<StatePart> gradients();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::nn
