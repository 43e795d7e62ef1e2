// The step itself: micro-batches, reduction, clipping, update; and access to its state between steps.
#include "workloads/nn/training_step.h"

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/trace/trace.h"
#include "workloads/nn/arrays.h"
#include "workloads/nn/fp8_scales.h"
#include "workloads/nn/input_prefetch.h"
#include "workloads/nn/loss_scaler.h"
#include "workloads/nn/probe.h"
#include "workloads/nn/reduction.h"
#include "workloads/nn/running_average.h"
#include "workloads/nn/step_graph.h"
#include "workloads/nn/step_memory.h"
#include "workloads/nn/step_plan.h"
#include "workloads/nn/weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>

namespace assay::nn {

namespace {

constexpr std::int32_t ignored = -100;
constexpr const char* no_valid_target = "no target of the step is valid, so its loss is undefined";

}  // namespace

class TrainingStep::Impl {
 public:
  Impl(const Model& model, const StepOptions& options, Device& device, std::shared_ptr<ops::Backend> backend,
       Communicator& comm)
      : plan(model, options, profile_of(device), std::move(backend)),
        device_(device),
        comm_(comm),
        stream_(device.make_stream()),
        scaler_(options.precision.loss_scaling),
        graphs_{StepGraph(device), StepGraph(device)},
        evaluation_(device) {}

  void allocate() {
    memory_.emplace(plan, device_, comm_, *stream_);
    scales_.emplace(plan, *memory_, device_);
    blocks_ = device_.allocate(2 * sizeof(StepBlock), Memory::pinned);
    std::uninitialized_default_construct_n(blocks_.as<StepBlock>(), 2);
    if (has_own_memory()) prefetch_.emplace(device_, plan.input_bytes());
    if (comm_.size() > 1) {
      if (plan.layout.running_bytes > 0) running_.emplace(plan, device_, comm_);
      reduction_ = make_reduction(comm_, device_);
    }
  }

  void connect() {
    check_allocated();
    if (!reduction_) return;
    reduce_sums();
    for (const Bucket& bucket : plan.parameters.buckets) reduce_bucket(bucket);
    reduce_magnitudes();
    reduction_->join(*stream_);
    stream_->synchronize();
  }

  void initialise(std::uint64_t seed) {
    check_allocated();
    initialise_weights(plan, *memory_, seed, device_, *stream_);
    scales_->initialise(*stream_);
    copies_stale_ = true;
    step_ = 0;
    scaler_ = LossScaler(options().precision.loss_scaling);
    prefetched_valid_.reset();
  }

  Inputs inputs(std::int64_t micro_batch) {
    ASSAY_CHECK(micro_batch >= 0 && micro_batch < options().accumulate, "micro-batch {}", micro_batch);
    if (prefetch_) prefetch_->wait_for_host_copy();
    std::byte* base = host_inputs(micro_batch);
    const auto ints = [&](Input which) -> std::span<std::int32_t> {
      const auto& entry = plan.layout.input(which);
      if (!entry) return {};
      return {reinterpret_cast<std::int32_t*>(base + entry->offset), static_cast<std::size_t>(entry->elements)};
    };
    Inputs inputs{ints(Input::ids), ints(Input::type_ids), ints(Input::lengths), {}, ints(Input::targets)};
    if (const auto& entry = plan.layout.input(Input::images))
      inputs.images = {reinterpret_cast<float*>(base + entry->offset), static_cast<std::size_t>(entry->elements)};
    return inputs;
  }

  void prefetch_inputs() {
    check_allocated();
    if (!prefetch_) return;
    prefetched_valid_ = count_valid();
    prefetch_->send();
  }
  void discard_prefetched() { prefetched_valid_.reset(); }

  StepResult step(double learning_rate, bool reduce, const std::function<void()>& meanwhile) {
    check_allocated();
    reducing_ = reduce && reduction_;
    const double cpu_before = reduction_ ? reduction_->cpu_seconds() : 0;
    const double wall_before = reduction_ ? reduction_->wall_seconds() : 0;
    const auto start = Clock::now();
    begin(learning_rate);
    StepGraph& graph = graphs_[reducing_ ? 1 : 0];
    graph.run(*stream_, [this](PartClock& clock) { enqueue(clock); });
    fetch_block();
    if (meanwhile && has_own_memory()) meanwhile();
    const double busy = seconds_since(start);
    stream_->synchronize();
    StepResult result;
    const auto parts_seconds = graph.clock().seconds();
    result.forward = parts_seconds[static_cast<std::size_t>(Part::forward)];
    result.backward = parts_seconds[static_cast<std::size_t>(Part::backward)];
    result.exposed_communication = parts_seconds[static_cast<std::size_t>(Part::exposed_communication)];
    result.optimizer = parts_seconds[static_cast<std::size_t>(Part::optimizer)];
    if (has_own_memory()) {
      double device = 0;
      for (const double part : parts_seconds) device += part;
      result.idle = std::max(0.0, busy - device);
    }
    if (reducing_) {
      result.communication_cpu = reduction_->cpu_seconds() - cpu_before;
      result.communication = reduction_->wall_seconds() - wall_before;
    }
    finish(result);
    return result;
  }

  StepResult evaluate() {
    check_allocated();
    ASSAY_CHECK(options().evaluation, "the step was planned without an evaluation");
    refresh_copies();
    if (has_own_memory()) device_.copy(memory_->inputs(0), host_inputs(0), plan.layout.input_bytes, *stream_);
    sent() = {};
    send_block();
    evaluation_.run(*stream_, [this](PartClock& clock) {
      walk(plan.evaluation, memory_->places(plan.evaluation, 0), &clock, false, nullptr);
      clock.begin(Part::done, *stream_);
    });
    fetch_block();
    stream_->synchronize();
    StepResult result;
    const auto parts_seconds = evaluation_.clock().seconds();
    result.forward = parts_seconds[static_cast<std::size_t>(Part::forward)];
    read_sums(result);
    return result;
  }

  std::string first_non_finite() {
    check_allocated();
    Probe probe(device_, *stream_);
    for (std::size_t i = 0; i < plan.layout.specs.size(); ++i)
      if (!probe.finite(weight(i), options().precision.master, plan.layout.specs[i].count()))
        return "weights/" + plan.layout.specs[i].name;
    const RunningStatisticsGuard guard(plan, *memory_, device_, *stream_);
    sent() = received();
    sent().sums = {};
    send_block();
    std::string found;
    for (std::int64_t m = 0; m < options().accumulate && found.empty(); ++m) {
      Program& program = plan.program(m);
      const Places places = memory_->places(program, m);
      if (const auto& entry = plan.layout.input(Input::images))
        if (!probe.finite(memory_->inputs(m) + entry->offset, entry->dtype, entry->elements)) return entry->name;
      const auto inspect = [&](const Instruction& instruction) {
        for (const Tensor tensor : instruction.writes) {
          const TensorInfo& info = program.tensors[static_cast<std::size_t>(tensor.id)];
          if (info.opaque || !found.empty()) continue;
          if (!probe.finite(places.at(tensor), info)) found = info.name;
        }
        return found.empty();
      };
      walk(program, places, nullptr, false, inspect);
    }
    return found;
  }

  std::vector<StatePart> state() {
    check_allocated();
    copies_stale_ = true;  // the caller may write to the masters
    std::vector<StatePart> parts = arrays("weights/", memory_->weights(), options().precision.master);
    for (int m = 0; m < plan.moments(); ++m) {
      const auto moments = arrays(m == 0 ? "moment1/" : "moment2/", memory_->moment(m), options().precision.master);
      parts.insert(parts.end(), moments.begin(), moments.end());
    }
    for (const RunningStatistic& entry : plan.layout.running)
      parts.push_back({entry.name, entry.dtype, {entry.elements}, memory_->running() + entry.offset, entry.bytes()});
    parts.push_back({"step", DType::i64, {1}, &step_, sizeof step_});
    for (StatePart& part : scales_->state()) parts.push_back(std::move(part));
    if (options().precision.loss_scaling) {
      parts.push_back({"loss_scale", DType::f32, {1}, &scaler_.state().scale, sizeof(float)});
      parts.push_back({"loss_scale_steps", DType::i32, {1}, &scaler_.state().good_steps, sizeof(std::int32_t)});
    }
    return parts;
  }

  std::vector<StatePart> gradients() {
    check_allocated();
    // The optimizer undoes loss scaling and the wrong estimate of valid targets; do the same here.
    if (gradient_multiplier_ != 1.0) {
      multiply(device_, *stream_, memory_->gradients(), options().precision.grad, plan.parameters.count,
               1.0 / gradient_multiplier_);
      gradient_multiplier_ = 1.0;
    }
    return arrays("gradients/", memory_->gradients(), options().precision.grad);
  }

  float loss_scale() const { return scaler_.scale(); }
  bool gradients_are_registered() const { return memory_ && memory_->gradients_are_registered(); }

  std::string graph() const {
    if (!has_own_memory()) return {};
    const StepGraph& used = graphs_[reduction_ ? 1 : 0];
    if (used.captured()) return "captured";
    return "eager: " + (used.why_not().empty() ? std::string("fewer than two steps were run") : used.why_not());
  }

  StepPlan plan;

 private:
  const StepOptions& options() const { return plan.layout.options; }
  void check_allocated() const { ASSAY_CHECK(memory_.has_value(), "call allocate() first"); }
  std::byte* weight(std::size_t parameter) const {
    return memory_->weights() +
           static_cast<std::size_t>(plan.parameters.begin[parameter]) * size_of(options().precision.master);
  }
  // Whether the device has its own memory and runs asynchronously to the host.
  bool has_own_memory() const { return device_.kind() != DeviceKind::cpu; }
  std::byte* host_inputs(std::int64_t micro_batch) const {
    if (!prefetch_) return memory_->inputs(micro_batch);
    return prefetch_->host() + plan.layout.input_bytes * static_cast<std::size_t>(micro_batch);
  }

  StepBlock& sent() { return blocks_.as<StepBlock>()[0]; }
  StepBlock& received() { return blocks_.as<StepBlock>()[1]; }
  const StepBlock& received() const { return blocks_.as<StepBlock>()[1]; }
  void send_block() { device_.copy(memory_->block(), &sent(), sizeof(StepBlock), *stream_); }
  void fetch_block() { device_.copy(&received(), memory_->block(), sizeof(StepBlock), *stream_); }

  // Layers read copies of the masters. The optimizer updates them, unless the masters were written from outside.
  void refresh_copies() {
    if (copies_stale_ && plan.copy_weights)
      plan.copy_weights->run(*stream_,
                             {.a = memory_->weights(), .out = memory_->copies(), .workspace = memory_->arena()});
    copies_stale_ = false;
  }

  std::int64_t count_valid() {
    const auto& entry = plan.layout.input(Input::targets);
    std::int64_t valid = 0;
    for (std::int64_t m = 0; m < options().accumulate; ++m) {
      const auto* targets = reinterpret_cast<const std::int32_t*>(host_inputs(m) + entry->offset);
      valid += entry->elements - std::count(targets, targets + entry->elements, ignored);
    }
    return valid;
  }

  void begin(double learning_rate) {
    if (has_own_memory() && !prefetched_valid_) prefetch_inputs();
    const std::int64_t valid = has_own_memory() ? *prefetched_valid_ : count_valid();
    prefetched_valid_.reset();
    if (valid == 0 && comm_.size() == 1) throw Error(no_valid_target);
    if (prefetch_) prefetch_->receive(memory_->inputs(0), *stream_);
    refresh_copies();
    // With several ranks, valid targets are counted while the step runs: gradients are scaled as if all targets were
    // valid, and the gradient norm op corrects for the difference.
    const auto& targets = plan.layout.input(Input::targets);
    expected_ = reducing_ ? targets->elements * options().accumulate * comm_.size() : valid;
    sent() = {};
    ops::StepState& state = sent().state;
    state.step = step_ + 1;
    state.learning_rate = static_cast<float>(learning_rate);
    state.loss_scale = scaler_.scale();
    state.gradient_scale = static_cast<float>(static_cast<double>(scaler_.scale()) /
                                              static_cast<double>(std::max<std::int64_t>(expected_, 1)));
    state.max_norm = static_cast<float>(options().max_norm);
    send_block();
    if (step_ == 0 && scales_->any()) calibrate_scales();
  }

  // Before the first step there is no history. So each micro-batch first runs once with every tensor that is rounded to
  // 8 bits scaled by its own magnitude, which starts the history. A scale of 1 would lose small gradients until
  // histories have filled.
  void calibrate_scales() {
    const RunningStatisticsGuard guard(plan, *memory_, device_, *stream_);
    scales_->initialise(*stream_);
    for (std::int64_t m = 0; m < options().accumulate; ++m) {
      const Program& program = plan.program(m);
      const Places places = memory_->places(program, m);
      scales_->reset_magnitudes(*stream_);
      walk(program, places, nullptr, false, [&](const Instruction& instruction) {
        if (instruction.rounds < 0) return true;
        scales_->use_current_magnitude(static_cast<std::size_t>(instruction.rounds), *stream_);
        instruction.run(*stream_, places);
        return true;
      });
      if (reducing_) {
        reduce_magnitudes();
        reduction_->join(*stream_);
      }
      scales_->update(nullptr, *stream_);
    }
    send_block();  // clears the loss sums
  }

  void reduce_magnitudes() {
    if (!scales_->any()) return;
    reduction_->submit([this](Communicator& comm, Stream& stream) { scales_->all_reduce(comm, stream); }, *stream_);
  }

  // The whole step, given its inputs and its block. Does not depend on the host, so that it can be captured.
  void enqueue(PartClock& clock) {
    if (reducing_ && running_) running_->before(*memory_, *stream_);
    scales_->reset_magnitudes(*stream_);
    const std::int64_t last = options().accumulate - 1;
    for (std::int64_t m = 0; m <= last; ++m) {
      Program& program = plan.program(m);
      walk(program, memory_->places(program, m), &clock, reducing_ && m == last, nullptr);
    }
    if (reducing_) {
      clock.begin(Part::exposed_communication, *stream_);
      const trace::Span span(trace::Category::sample, "exposed_communication");
      reduce_magnitudes();
      reduction_->join(*stream_);
    }
    clock.begin(Part::optimizer, *stream_);
    const trace::Span span(trace::Category::sample, "optimizer");
    StepBlock* block = memory_->block();
    plan.norm->run(*stream_, {.gradient = memory_->gradients(),
                              .state = &block->state,
                              .valid = reducing_ ? &block->sums.valid : nullptr,
                              .expected = expected_,
                              .workspace = memory_->arena()});
    scales_->update(&block->state, *stream_);
    plan.optimizer->run(*stream_, {.state = &block->state,
                                   .master = memory_->weights(),
                                   .gradient = memory_->gradients(),
                                   .moment1 = memory_->moment(0),
                                   .moment2 = memory_->moment(1),
                                   .parameter = memory_->copies(),
                                   .workspace = memory_->arena()});
    clock.begin(Part::done, *stream_);
  }

  // Runs a program. With `reduce`, gradients are reduced as they become ready. `inspect` is called after each
  // instruction and stops the program by returning false.
  void walk(const Program& program, const Places& places, PartClock* clock, bool reduce,
            const std::function<bool(const Instruction&)>& inspect) {
    const std::vector<Instruction>& list = program.instructions;
    std::size_t bucket = 0;
    bool going = true;
    const auto run = [&](std::size_t i) {
      list[i].run(*stream_, places);
      if (inspect) going = inspect(list[i]);
      if (!reduce) return;
      if (i + 1 == program.forward_done) reduce_sums();
      for (; bucket < plan.parameters.buckets.size() && plan.parameters.buckets[bucket].ready == i + 1; ++bucket)
        reduce_bucket(plan.parameters.buckets[bucket]);
    };
    for (std::size_t i = 0; i < list.size() && going;) {
      const Phase phase = list[i].phase;
      const bool forward = phase == Phase::forward;
      if (clock) clock->begin(forward ? Part::forward : Part::backward, *stream_);
      const trace::Span phase_span(trace::Category::sample, forward ? "forward" : "backward");
      while (i < list.size() && going && list[i].phase == phase) {
        const std::size_t scope = list[i].scope;
        const trace::Span layer_span(trace::Category::layer, program.scopes[scope].c_str());
        for (; i < list.size() && going && list[i].phase == phase && list[i].scope == scope; ++i) run(i);
      }
    }
  }

  void reduce_bucket(const Bucket& bucket) {
    const DType dtype = options().precision.grad;
    std::byte* at = memory_->gradients() + static_cast<std::size_t>(bucket.begin) * size_of(dtype);
    const auto count = static_cast<std::size_t>(bucket.end - bucket.begin);
    const auto job = [at, count, dtype](Communicator& comm, Stream& stream) {
      const trace::Span span(trace::Category::communication, "all_reduce",
                             static_cast<std::int64_t>(count * size_of(dtype)));
      comm.all_reduce(at, at, count, dtype, ReduceOp::sum, stream);
    };
    reduction_->submit(job, *stream_);
  }

  // Called after the forward pass: reduces the loss and the running statistics.
  void reduce_sums() {
    if (running_)
      reduction_->submit([this](Communicator& comm, Stream& stream) { running_->reduce(*memory_, comm, stream); },
                         *stream_);
    const auto job = [this](Communicator& comm, Stream& stream) {
      const trace::Span span(trace::Category::communication, "all_reduce", sizeof(ops::LossSums));
      ops::LossSums& sums = memory_->block()->sums;
      static_assert(offsetof(ops::LossSums, correct) == offsetof(ops::LossSums, valid) + sizeof(std::int64_t));
      comm.all_reduce(&sums.loss, &sums.loss, 1, DType::f64, ReduceOp::sum, stream);
      comm.all_reduce(&sums.valid, &sums.valid, 2, DType::i64, ReduceOp::sum, stream);
    };
    reduction_->submit(job, *stream_);
  }

  void finish(StepResult& result) {
    const ops::StepState& state = received().state;
    read_sums(result);
    if (result.valid == 0) throw Error(no_valid_target);
    // gradients = sum * loss_scale / expected, but their mean is sum / valid.
    gradient_multiplier_ = static_cast<double>(state.loss_scale);
    if (reducing_) gradient_multiplier_ *= static_cast<double>(result.valid) / static_cast<double>(expected_);
    result.gradient_norm = static_cast<double>(state.norm);
    result.skipped = state.found_infinity != 0;
    if (!result.skipped) ++step_;
    scaler_.update(result.skipped);
  }

  void read_sums(StepResult& result) const {
    const ops::LossSums& sums = received().sums;
    result.loss_sum = sums.loss;
    result.valid = sums.valid;
    result.correct = sums.correct;
    result.loss = result.valid > 0 ? result.loss_sum / static_cast<double>(result.valid) : 0.0;
  }

  std::vector<StatePart> arrays(const char* prefix, std::byte* base, DType dtype) const {
    std::vector<StatePart> parts;
    for (std::size_t i = 0; i < plan.layout.specs.size(); ++i) {
      const ParameterSpec& spec = plan.layout.specs[i];
      std::byte* at = base + static_cast<std::size_t>(plan.parameters.begin[i]) * size_of(dtype);
      parts.push_back(
          {prefix + spec.name, dtype, spec.shape, at, static_cast<std::size_t>(spec.count()) * size_of(dtype)});
    }
    return parts;
  }

  Device& device_;
  Communicator& comm_;
  std::unique_ptr<Stream> stream_;
  std::optional<StepMemory> memory_;
  std::optional<Fp8Scales> scales_;
  Buffer blocks_;                                 // pinned: the step's block as sent, and as received
  std::optional<InputPrefetch> prefetch_;         // if the device has its own memory
  std::optional<std::int64_t> prefetched_valid_;  // valid targets of the prefetched batch, if there is one
  LossScaler scaler_;
  std::int64_t step_ = 0;  // steps so far
  bool copies_stale_ = true;
  bool reducing_ = false;
  std::int64_t expected_ = 1;
  double gradient_multiplier_ = 1.0;
  std::array<StepGraph, 2> graphs_;  // without and with reduction
  StepGraph evaluation_;
  std::optional<RunningAverage> running_;
  std::unique_ptr<Reduction> reduction_;  // last: its thread ends first
};

TrainingStep::TrainingStep(const Model& model, const StepOptions& options, Device& device,
                           std::shared_ptr<ops::Backend> backend, Communicator& comm)
    : impl_(std::make_unique<Impl>(model, options, device, std::move(backend), comm)) {}
TrainingStep::~TrainingStep() = default;

const MemoryPlan& TrainingStep::memory() const { return impl_->plan.memory; }
std::string TrainingStep::implementations() const { return impl_->plan.layout.ops.implementations(); }
std::string TrainingStep::choices() const { return impl_->plan.layout.ops.choices(); }
bool TrainingStep::repeats() const { return impl_->plan.layout.ops.repeats(); }
void TrainingStep::allocate() { impl_->allocate(); }
void TrainingStep::connect() { impl_->connect(); }
void TrainingStep::initialise(std::uint64_t seed) { impl_->initialise(seed); }
Inputs TrainingStep::inputs(std::int64_t micro_batch) { return impl_->inputs(micro_batch); }
void TrainingStep::prefetch_inputs() { impl_->prefetch_inputs(); }
void TrainingStep::discard_prefetched() { impl_->discard_prefetched(); }
StepResult TrainingStep::step(double learning_rate, bool reduce, const std::function<void()>& meanwhile) {
  return impl_->step(learning_rate, reduce, meanwhile);
}
std::string TrainingStep::graph() const { return impl_->graph(); }
StepResult TrainingStep::evaluate() { return impl_->evaluate(); }
std::string TrainingStep::first_non_finite() { return impl_->first_non_finite(); }
float TrainingStep::loss_scale() const { return impl_->loss_scale(); }
bool TrainingStep::gradients_are_registered() const { return impl_->gradients_are_registered(); }
std::vector<StatePart> TrainingStep::state() { return impl_->state(); }
std::vector<StatePart> TrainingStep::gradients() { return impl_->gradients(); }

}  // namespace assay::nn
