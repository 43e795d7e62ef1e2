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
#include "workloads/nn/state_parts.h"
#include "workloads/nn/step_collectives.h"
#include "workloads/nn/step_graph.h"
#include "workloads/nn/step_memory.h"
#include "workloads/nn/step_plan.h"
#include "workloads/nn/walk.h"

#include <algorithm>

namespace assay::nn {

namespace {

StepOptions on_ranks(StepOptions options, const Communicator& comm) {
  options.layout.dp = comm.size();
  return options;
}

constexpr std::int32_t ignored = -100;
constexpr const char* no_valid_target = "no target of the step is valid, so its loss is undefined";

}  // namespace

class TrainingStep::Impl {
 public:
  Impl(const Model& model, const StepOptions& options, Device& device, std::shared_ptr<ops::Backend> backend,
       Communicator& comm)
      : plan(model, on_ranks(options, comm), profile_of(device), std::move(backend), comm.rank()),
        device_(device),
        comm_(comm),
        stream_(device.make_stream()),
        scaler_(options.precision.loss_scaling),
        graphs_{StepGraph(device), StepGraph(device), StepGraph(device), StepGraph(device)},
        evaluation_(device) {}

  void allocate() {
    memory_.emplace(plan, device_, comm_, *stream_);
    scales_.emplace(plan, *memory_, device_);
    blocks_ = device_.allocate(2 * sizeof(StepBlock), Memory::pinned);
    std::uninitialized_default_construct_n(blocks_.as<StepBlock>(), 2);
    if (has_own_memory()) prefetch_.emplace(device_, plan.input_bytes());
    if (comm_.size() > 1) collectives_.emplace(plan, *memory_, comm_, device_);
  }

  void connect() {
    check_allocated();
    if (collectives_) collectives_->connect(*scales_, *stream_);
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

  StepResult step(double learning_rate, const Exchange& exchange, const std::function<void()>& meanwhile) {
    check_allocated();
    reducing_ = exchange.reduce && collectives_;
    gathering_ = exchange.gather && collectives_ && plan.divides();
    const double cpu_before = collectives_ ? collectives_->cpu_seconds() : 0;
    const double wall_before = collectives_ ? collectives_->wall_seconds() : 0;
    const auto start = Clock::now();
    begin(learning_rate);
    StepGraph& graph = graph_of(reducing_, gathering_);
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
    result.exposed_gather = parts_seconds[static_cast<std::size_t>(Part::exposed_gather)];
    result.optimizer = parts_seconds[static_cast<std::size_t>(Part::optimizer)];
    if (has_own_memory()) {
      double device = 0;
      for (const double part : parts_seconds) device += part;
      result.idle = std::max(0.0, busy - device);
    }
    if (reducing_) {
      result.communication_cpu = collectives_->cpu_seconds() - cpu_before;
      result.communication = collectives_->wall_seconds() - wall_before;
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
      walk(plan.evaluation, 0, {.clock = &clock});
      if (plan.gathers_weights()) collectives_->join(*stream_);
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
    std::string found;
    for (const StatePart& part : model_state(plan, *memory_))
      if (found.empty() && part.name.starts_with("weights/") && !probe.finite(part.data, part.dtype, part.count()))
        found = part.name;
    const RunningStatisticsGuard guard(plan, *memory_, device_, *stream_);
    sent() = received();
    sent().sums = {};
    send_block();
    // Ranks that gather weights do so until the end, whatever each of them finds.
    const auto on = [&] { return found.empty() || plan.gathers_weights(); };
    for (std::int64_t m = 0; m < options().accumulate && on(); ++m) {
      const Program& program = plan.program(m);
      if (const auto& entry = plan.layout.input(Input::images))
        if (found.empty() && !probe.finite(memory_->inputs(m) + entry->offset, entry->dtype, entry->elements))
          found = entry->name;
      const auto inspect = [&](const Instruction& instruction, const Places& places) {
        for (const Tensor tensor : instruction.writes) {
          const TensorInfo& info = program.tensors[static_cast<std::size_t>(tensor.id)];
          if (info.opaque || !found.empty()) continue;
          if (!probe.finite(places.at(tensor), info)) found = info.name;
        }
        return found.empty();
      };
      if (on()) walk(program, m, {.inspect = inspect});
    }
    if (plan.gathers_weights()) collectives_->join(*stream_);
    return found;
  }

  std::vector<StatePart> state() {
    check_allocated();
    copies_stale_ = true;  // the caller may write to the masters
    std::vector<StatePart> parts = model_state(plan, *memory_);
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
      multiply(device_, *stream_, memory_->gradients(), options().precision.grad,
               plan.parameters.size(Array::gradients), 1.0 / gradient_multiplier_);
      gradient_multiplier_ = 1.0;
    }
    return reduced_gradients(plan, *memory_);
  }

  float loss_scale() const { return scaler_.scale(); }
  bool gradients_are_registered() const { return memory_ && memory_->gradients_are_registered(); }

  std::string graph() const {
    if (!has_own_memory()) return {};
    const StepGraph& used = graph_of(collectives_.has_value(), collectives_ && plan.divides());
    if (used.captured()) return "captured";
    return "eager: " + (used.why_not().empty() ? std::string("fewer than two steps were run") : used.why_not());
  }

  StepPlan plan;

 private:
  const StepOptions& options() const { return plan.layout.options; }
  void check_allocated() const { ASSAY_CHECK(memory_.has_value(), "call allocate() first"); }
  const StepGraph& graph_of(bool reducing, bool gathering) const {
    return graphs_[(reducing ? 1u : 0u) + (gathering ? 2u : 0u)];
  }
  StepGraph& graph_of(bool reducing, bool gathering) { return graphs_[(reducing ? 1u : 0u) + (gathering ? 2u : 0u)]; }
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
    if (!std::exchange(copies_stale_, false) || plan.parameters.size(Array::copies) == 0) return;
    for (const Update& update : plan.updates)
      if (update.copy)
        update.copy->run(*stream_, {.a = at(Array::masters, update, memory_->weights()),
                                    .out = at(Array::copies, update, memory_->copies()),
                                    .workspace = memory_->arena()});
    if (!plan.divides()) return;
    for (const Bucket& bucket : plan.parameters.buckets) collectives_->gather(bucket, *stream_);
    collectives_->join(*stream_);
  }
  std::byte* at(Array array, const Update& update, std::byte* base) const {
    return base ? base + plan.offset(array, update.in(array)) : nullptr;
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
      scales_->reset_magnitudes(*stream_);
      const auto rescale = [&](const Instruction& instruction, const Places& places) {
        if (instruction.rounds < 0) return true;
        scales_->use_current_magnitude(static_cast<std::size_t>(instruction.rounds), *stream_);
        instruction.run(*stream_, places);
        return true;
      };
      walk(plan.program(m), m, {.inspect = rescale});
      if (reducing_) {
        collectives_->reduce_magnitudes(*scales_, *stream_);
        collectives_->join(*stream_);
      }
      scales_->update(nullptr, *stream_);
    }
    send_block();  // clears the loss sums
  }

  // The whole step, given its inputs and its block. Does not depend on the host, so that it can be captured.
  void enqueue(PartClock& clock) {
    if (reducing_) collectives_->begin(*stream_);
    scales_->reset_magnitudes(*stream_);
    const std::int64_t last = options().accumulate - 1;
    for (std::int64_t m = 0; m <= last; ++m)
      walk(plan.program(m), m,
           {.clock = &clock, .first = m == 0, .last = m == last, .reduce = reducing_, .gather = gathering_});
    if (reducing_ || plan.gathers_weights()) {
      clock.begin(Part::exposed_communication, *stream_);
      const trace::Span span(trace::Category::sample, "exposed_communication");
      if (reducing_) collectives_->reduce_magnitudes(*scales_, *stream_);
      collectives_->join(*stream_);
    }
    update(clock);
    clock.begin(Part::done, *stream_);
  }

  void update(PartClock& clock) {
    clock.begin(Part::optimizer, *stream_);
    {
      const trace::Span span(trace::Category::sample, "optimizer");
      take_norm(clock);
      scales_->update(&memory_->block()->state, *stream_);
      for (std::size_t i = 0; i < plan.updates.size(); ++i) {
        const Update& part = plan.updates[i];
        part.optimizer->run(*stream_, {.state = &memory_->block()->state,
                                       .master = at(Array::masters, part, memory_->weights()),
                                       .gradient = at(Array::gradients, part, memory_->gradients()),
                                       .moment1 = at(Array::moments, part, memory_->moment(0)),
                                       .moment2 = at(Array::moments, part, memory_->moment(1)),
                                       .parameter = at(Array::copies, part, memory_->copies()),
                                       .workspace = memory_->arena()});
        if (gathering_) collectives_->gather(plan.parameters.buckets[i], *stream_);
      }
    }
    if (!gathering_) return;
    clock.begin(Part::exposed_gather, *stream_);
    const trace::Span span(trace::Category::sample, "exposed_communication");
    collectives_->join(*stream_);
  }

  void take_norm(PartClock& clock) {
    StepBlock* block = memory_->block();
    const ops::GradientNorm::Args norm{.gradient = memory_->gradients(),
                                       .state = &block->state,
                                       .valid = reducing_ ? &block->sums.valid : nullptr,
                                       .expected = expected_,
                                       .workspace = memory_->arena()};
    plan.norm->sum(*stream_, norm);
    if (reducing_ && plan.divides()) {
      clock.begin(Part::exposed_communication, *stream_);
      collectives_->reduce_square_sums(*stream_);
      collectives_->join(*stream_);
      clock.begin(Part::optimizer, *stream_);
    }
    plan.norm->fold(*stream_, norm);
  }

  void walk(const Program& program, std::int64_t micro_batch, Walk how) {
    if (collectives_) how.collectives = &*collectives_;
    nn::walk(plan, *memory_, program, micro_batch, how, *stream_);
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
  bool gathering_ = false;
  std::int64_t expected_ = 1;
  double gradient_multiplier_ = 1.0;
  std::array<StepGraph, 4> graphs_;  // without and with what ranks exchange
  StepGraph evaluation_;
  std::optional<StepCollectives> collectives_;  // last: its thread ends first
};

TrainingStep::TrainingStep(const Model& model, const StepOptions& options, Device& device,
                           std::shared_ptr<ops::Backend> backend, Communicator& comm)
    : impl_(std::make_unique<Impl>(model, options, device, std::move(backend), comm)) {}
TrainingStep::~TrainingStep() = default;

const MemoryPlan& TrainingStep::memory() const { return impl_->plan.memory; }
parallel::Moved TrainingStep::communication_bytes() const { return parallel::moved_by(impl_->plan.collectives()); }
std::string TrainingStep::implementations() const { return impl_->plan.layout.ops.implementations(); }
std::string TrainingStep::choices() const { return impl_->plan.layout.ops.choices(); }
bool TrainingStep::repeats() const { return impl_->plan.layout.ops.repeats(); }
void TrainingStep::allocate() { impl_->allocate(); }
void TrainingStep::connect() { impl_->connect(); }
void TrainingStep::initialise(std::uint64_t seed) { impl_->initialise(seed); }
Inputs TrainingStep::inputs(std::int64_t micro_batch) { return impl_->inputs(micro_batch); }
void TrainingStep::prefetch_inputs() { impl_->prefetch_inputs(); }
void TrainingStep::discard_prefetched() { impl_->discard_prefetched(); }
StepResult TrainingStep::step(double learning_rate, const Exchange& exchange, const std::function<void()>& meanwhile) {
  return impl_->step(learning_rate, exchange, meanwhile);
}
std::string TrainingStep::graph() const { return impl_->graph(); }
StepResult TrainingStep::evaluate() { return impl_->evaluate(); }
std::string TrainingStep::first_non_finite() { return impl_->first_non_finite(); }
float TrainingStep::loss_scale() const { return impl_->loss_scale(); }
bool TrainingStep::gradients_are_registered() const { return impl_->gradients_are_registered(); }
std::vector<StatePart> TrainingStep::state() { return impl_->state(); }
std::vector<StatePart> TrainingStep::gradients() { return impl_->gradients(); }

}  // namespace assay::nn
