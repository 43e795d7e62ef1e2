// One optimizer step of a model on a device: planned, allocated, then run repeatedly.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/device/device.h"
#include "workloads/nn/memory_plan.h"
#include "workloads/nn/step_options.h"
#include "workloads/ops/backend.h"
#include "workloads/parallel/collectives.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace assay::nn {

// The inputs of a micro-batch in host memory, filled by the caller before a step. Empty if the model does not use them.
struct Inputs {
  std::span<std::int32_t> ids;       // (B, T) tokens
  std::span<std::int32_t> type_ids;  // (B, T), if the model has token types
  std::span<std::int32_t> lengths;   // (B), if the model masks padding
  std::span<float> images;           // (B, H, W, 3), normalised
  std::span<std::int32_t> targets;   // (B, T) or (B); -100 is ignored
};

struct StepResult {
  double loss = 0;      // mean over the valid targets of all ranks and micro-batches, in nats
  double loss_sum = 0;  // sum over those targets
  std::int64_t valid = 0;
  std::int64_t correct = 0;
  double gradient_norm = 0;
  bool skipped = false;  // a gradient was not finite: nothing was updated

  // Seconds on this rank; on a GPU measured by events.
  double forward = 0;
  double backward = 0;
  // Time after backward spent waiting for the reduction. Since gradients are complete on all ranks at once, the minimum
  // over ranks is the transfer itself, and anything beyond that is waiting for ranks that arrive later.
  double exposed_communication = 0;
  double exposed_gather = 0;  // the same of gathering weights
  double optimizer = 0;
  // Seconds that the device, done with the step, waited for the `meanwhile` of step().
  double idle = 0;
  double communication = 0;      // wall time of the reducer's thread in collective calls
  double communication_cpu = 0;  // its CPU time in them
};

// A named array of the training state in canonical layout, or the range of it that this rank holds; for checkpoints and
// golden files.
struct StatePart {
  std::string name;  // "weights/block.0.norm1.weight", "moment1/...", "running_mean/...", "step"
  DType dtype;
  std::vector<std::int64_t> shape;  // shape of the whole array
  void* data = nullptr;             // its elements from `first`, in row-major order; copy with Device::copy
  std::size_t bytes = 0;            // size of the elements at `data`
  std::int64_t first = 0;           // above 0 only if ranks divide the array

  std::int64_t count() const { return static_cast<std::int64_t>(bytes / size_of(dtype)); }
  // Whether this rank holds the whole array.
  bool whole() const {
    return first == 0 && count() == std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  }
};

// The exchanges of ranks in a step. One is switched off only to measure what it costs: weights then differ, unless the
// rate is 0.
struct Exchange {
  bool reduce = true;  // gradients and sums
  bool gather = true;  // weights, if ranks divide the optimizer's work
};

// The loss is the sum over valid targets divided by their number on all ranks; gradients are reduced as sums.
class TrainingStep {
 public:
  // Plans; keeps references to `device` and `comm`, not to `model`. Throws UsageError if the model cannot be built with
  // these options (for instance a dtype that the device lacks), with the reason.
  TrainingStep(const Model& model, const StepOptions& options, Device& device, std::shared_ptr<ops::Backend> backend,
               Communicator& comm);
  ~TrainingStep();

  const MemoryPlan& memory() const;
  // Bytes of gradients and of weights that a step moves between ranks: an all-reduce counts twice.
  parallel::Moved communication_bytes() const;
  // The implementation of each op, for the record's labels: "conv brgconv:avx512_core; matmul brg:avx512_core".
  std::string implementations() const;
  // The choices that some of them made by trial.
  std::string choices() const;
  // Whether a step from the same state with the same inputs gives the same bits on this rank. The loss of its forward
  // pass always is the same.
  bool repeats() const;

  // Throws Error with the planned bytes by term if they do not fit.
  void allocate();
  // Makes each collective call of a step once, with several ranks, so that the library allocates what it needs for
  // them. Call it on every rank, before initialise().
  void connect();
  // Weights as a function of seed, parameter name and index: the same on every rank.
  void initialise(std::uint64_t seed);

  // Host memory for the next batch.
  Inputs inputs(std::int64_t micro_batch);
  // Starts copying inputs() to a device with its own memory, concurrently with its work. The next step uses that copy,
  // and inputs() may be filled for the one after. If it was not called, step() copies them.
  void prefetch_inputs();
  // Undoes prefetch_inputs().
  void discard_prefetched();
  // Runs the micro-batches, reduces over the ranks, clips, updates, and gathers what ranks updated. Opens the spans
  // forward, backward, exposed_communication, optimizer. From the second step on, a GPU replays a graph. On a GPU only,
  // the host runs `meanwhile` while the device works.
  StepResult step(double learning_rate, const Exchange& exchange = {}, const std::function<void()>& meanwhile = {});
  // "captured", or "eager: " and the reason; empty if streams run inline.
  std::string graph() const;
  // Forward pass over inputs(0), with batch norm by running statistics. Does not reduce: add up loss_sum, valid and
  // correct over batches and ranks. Only with StepOptions::evaluation.
  StepResult evaluate();
  // The first non-finite tensor of the last step, found by running it again with probes: "block.3.mlp.out".
  std::string first_non_finite();

  float loss_scale() const;
  // Whether the gradients are in memory that is registered with the communicator's library.
  bool gradients_are_registered() const;
  // Everything that determines later steps, as far as this rank holds it; may be written between steps. Valid after
  // allocate(). If ranks divide state, call it on every rank.
  std::vector<StatePart> state();
  // The gradients of the last step (of the mean loss, reduced) that this rank has, for tests.
  std::vector<StatePart> gradients();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::nn
