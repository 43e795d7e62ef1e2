// The step itself: micro-batches, reduction, clipping, update; and what is asked of it between steps.
#include "workloads/nn/training_step.h"

#include "harness/core/error.h"
#include "harness/trace/trace.h"
#include "workloads/nn/loss_scaler.h"
#include "workloads/nn/probe.h"
#include "workloads/nn/reducer.h"
#include "workloads/nn/running_average.h"
#include "workloads/nn/step_memory.h"
#include "workloads/nn/step_plan.h"
#include "workloads/nn/weights.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

namespace assay::nn {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

constexpr std::int32_t ignored = -100;

}  // namespace

class TrainingStep::Impl {
 public:
  Impl(const Model& model, const StepOptions& options, Device& device, std::shared_ptr<ops::Backend> backend,
       Communicator& comm)
      : plan(model, options, std::move(backend)),
        device_(device),
        comm_(comm),
        stream_(device.make_stream()),
        scaler_(options.precision.loss_scaling),
        running_(plan, device) {}

  void allocate() {
    memory_.emplace(plan, device_, *stream_);
    // A device that shares the host's memory is filled in place.
    if (device_.kind() != DeviceKind::cpu) staged_ = device_.allocate(staged_bytes(), Memory::pinned);
    if (comm_.size() > 1) reducer_.emplace(comm_, device_);
  }

  void initialise(std::uint64_t seed) {
    memory();
    initialise_weights(plan, *memory_, seed, device_, *stream_);
    step_ = 0;
    scaler_ = LossScaler(options().precision.loss_scaling);
  }

  Inputs inputs(std::int64_t micro_batch) {
    ASSAY_CHECK(micro_batch >= 0 && micro_batch < options().accumulate, "micro-batch {}", micro_batch);
    std::byte* base = host_inputs(micro_batch);
    const auto ints = [&](Input which) -> std::span<std::int32_t> {
      const auto& entry = plan.layout.inputs[static_cast<std::size_t>(which)];
      if (!entry) return {};
      return {reinterpret_cast<std::int32_t*>(base + entry->offset), static_cast<std::size_t>(entry->elements)};
    };
    Inputs inputs{ints(Input::ids), ints(Input::type_ids), ints(Input::lengths), {}, ints(Input::targets)};
    if (const auto& entry = plan.layout.inputs[static_cast<std::size_t>(Input::images)])
      inputs.images = {reinterpret_cast<float*>(base + entry->offset), static_cast<std::size_t>(entry->elements)};
    return inputs;
  }

  StepResult step(double learning_rate, bool reduce) {
    memory();
    reducing_ = reduce && reducer_;
    const double cpu_before = reducer_ ? reducer_->cpu_seconds() : 0;
    const double wall_before = reducer_ ? reducer_->wall_seconds() : 0;
    StepResult result;
    begin(learning_rate);
    if (reducing_ && plan.layout.running_bytes > 0) running_.before(*memory_, *stream_);
    const std::int64_t last = options().accumulate - 1;
    for (std::int64_t m = 0; m <= last; ++m) {
      Program& program = plan.program(m);
      walk(program, memory_->places(program, m), result, reducing_ && m == last, nullptr);
    }
    if (reducing_) {
      const auto start = Clock::now();
      const trace::Span span(trace::Category::sample, "exposed_communication");
      reducer_->wait();
      result.exposed_communication = seconds_between(start, Clock::now());
      result.communication_cpu = reducer_->cpu_seconds() - cpu_before;
      result.communication = reducer_->wall_seconds() - wall_before;
    }
    finish(result);
    return result;
  }

  StepResult evaluate() {
    memory();
    StepResult result;
    stage(1);
    block_ = {};
    send_block();
    walk(plan.evaluation, memory_->places(plan.evaluation, 0), result, false, nullptr);
    receive_block();
    take_sums(result);
    return result;
  }

  std::string first_non_finite() {
    memory();
    Probe probe(device_, *stream_);
    for (std::size_t i = 0; i < plan.layout.specs.size(); ++i)
      if (!probe.finite(weight(i), options().precision.master, plan.layout.specs[i].count()))
        return "weights/" + plan.layout.specs[i].name;
    const KeptRunning kept(plan, *memory_, device_, *stream_);
    block_.sums = {};
    send_block();
    std::string found;
    StepResult unused;
    for (std::int64_t m = 0; m < options().accumulate && found.empty(); ++m) {
      Program& program = plan.program(m);
      const Places places = memory_->places(program, m);
      if (const auto& entry = plan.layout.inputs[static_cast<std::size_t>(Input::images)])
        if (!probe.finite(memory_->inputs(m) + entry->offset, entry->dtype, entry->elements)) return entry->name;
      const auto look = [&](const Instruction& instruction) {
        for (const Tensor tensor : instruction.writes) {
          const TensorInfo& info = program.tensors[static_cast<std::size_t>(tensor.id)];
          if (info.opaque || !found.empty()) continue;
          const auto count = static_cast<std::int64_t>(info.bytes / size_of(info.dtype));
          if (!probe.finite(places.at(tensor), info.dtype, count)) found = info.name;
        }
        return found.empty();
      };
      walk(program, places, unused, false, look);
    }
    return found;
  }

  std::vector<StatePart> state() {
    memory();
    std::vector<StatePart> parts = arrays("weights/", memory_->weights(), options().precision.master);
    for (int m = 0; m < plan.moments(); ++m) {
      const auto moments = arrays(m == 0 ? "moment1/" : "moment2/", memory_->moment(m), options().precision.master);
      parts.insert(parts.end(), moments.begin(), moments.end());
    }
    for (const RunningStatistic& entry : plan.layout.running)
      parts.push_back({entry.name, entry.dtype, {entry.elements}, memory_->running() + entry.offset, entry.bytes()});
    parts.push_back({"step", DType::i64, {1}, &step_, sizeof step_});
    if (options().precision.loss_scaling) {
      parts.push_back({"loss_scale", DType::f32, {1}, &scaler_.state().scale, sizeof(float)});
      parts.push_back({"loss_scale_steps", DType::i32, {1}, &scaler_.state().good_steps, sizeof(std::int32_t)});
    }
    return parts;
  }

  std::vector<StatePart> gradients() {
    memory();
    // What the optimizer would have divided by: loss scaling, and targets that turned out not to be valid.
    if (gradient_multiplier_ != 1.0) {
      ASSAY_CHECK(device_.kind() == DeviceKind::cpu, "scaled gradients are looked at on the host");
      multiply(memory_->gradients(), options().precision.grad, plan.parameters.count, 1.0 / gradient_multiplier_);
      gradient_multiplier_ = 1.0;
    }
    return arrays("gradients/", memory_->gradients(), options().precision.grad);
  }

  float loss_scale() const { return scaler_.scale(); }

  StepPlan plan;

 private:
  const StepOptions& options() const { return plan.layout.options; }
  void memory() const { ASSAY_CHECK(memory_.has_value(), "allocate() comes first"); }
  std::byte* weight(std::size_t parameter) const {
    return memory_->weights() +
           static_cast<std::size_t>(plan.parameters.begin[parameter]) * size_of(options().precision.master);
  }
  std::size_t staged_bytes() const { return plan.layout.input_bytes * static_cast<std::size_t>(options().accumulate); }
  std::byte* host_inputs(std::int64_t micro_batch) const {
    if (!staged_.data()) return memory_->inputs(micro_batch);
    return staged_.as<std::byte>() + plan.layout.input_bytes * static_cast<std::size_t>(micro_batch);
  }

  // Sends what the caller filled in to the device, where that is another place.
  void stage(std::int64_t micro_batches) {
    if (!staged_.data()) return;
    const std::size_t bytes = plan.layout.input_bytes * static_cast<std::size_t>(micro_batches);
    device_.copy(memory_->inputs(0), staged_.data(), bytes, *stream_);
  }
  void send_block() { device_.copy(memory_->block(), &block_, sizeof block_, *stream_); }
  void receive_block() {
    device_.copy(&block_, memory_->block(), sizeof block_, *stream_);
    stream_->synchronize();
  }

  std::int64_t count_valid() {
    std::int64_t valid = 0;
    for (std::int64_t m = 0; m < options().accumulate; ++m)
      for (const std::int32_t target : inputs(m).targets) valid += target != ignored;
    return valid;
  }

  void begin(double learning_rate) {
    stage(options().accumulate);
    // Over several ranks the valid targets are counted while the step runs: gradients are scaled as if all were valid,
    // and finish() makes up for the difference.
    const auto& targets = plan.layout.inputs[static_cast<std::size_t>(Input::targets)];
    valid_ = count_valid();
    if (valid_ == 0 && comm_.size() == 1) throw Error("no target of the step is valid: its loss is not defined");
    expected_ = reducing_ ? targets->elements * options().accumulate * comm_.size() : valid_;
    block_ = {};
    block_.state.step = step_ + 1;
    block_.state.learning_rate = static_cast<float>(learning_rate);
    block_.state.loss_scale = scaler_.scale();
    block_.state.gradient_scale = static_cast<float>(static_cast<double>(scaler_.scale()) /
                                                     static_cast<double>(std::max<std::int64_t>(expected_, 1)));
    block_.state.max_norm = static_cast<float>(options().max_norm);
    send_block();
  }

  // Walks a program. With `fire` gradients are handed to the reducer as they become ready. `look` is called after each
  // instruction; false ends the walk.
  void walk(const Program& program, const Places& places, StepResult& result, bool fire,
            const std::function<bool(const Instruction&)>& look) {
    const std::vector<Instruction>& list = program.instructions;
    std::size_t bucket = 0;
    bool going = true;
    const auto run = [&](std::size_t i) {
      list[i].run(*stream_, places);
      if (look) going = look(list[i]);
      if (!fire) return;
      if (i + 1 == program.forward_done) fire_sums();
      for (; bucket < plan.parameters.buckets.size() && plan.parameters.buckets[bucket].ready == i + 1; ++bucket)
        fire_bucket(plan.parameters.buckets[bucket]);
    };
    for (std::size_t i = 0; i < list.size() && going;) {
      const auto start = Clock::now();
      const Phase phase = list[i].phase;
      const bool forward = phase == Phase::forward;
      const trace::Span phase_span(trace::Category::sample, forward ? "forward" : "backward");
      while (i < list.size() && going && list[i].phase == phase) {
        const std::size_t scope = list[i].scope;
        const trace::Span layer_span(trace::Category::layer, program.scopes[scope].c_str());
        for (; i < list.size() && going && list[i].phase == phase && list[i].scope == scope; ++i) run(i);
      }
      if (i == list.size()) stream_->synchronize();
      (forward ? result.forward : result.backward) += seconds_between(start, Clock::now());
    }
  }

  void fire_bucket(const Bucket& bucket) {
    const DType dtype = options().precision.grad;
    std::byte* at = memory_->gradients() + static_cast<std::size_t>(bucket.begin) * size_of(dtype);
    const auto count = static_cast<std::size_t>(bucket.end - bucket.begin);
    submit([at, count, dtype](Communicator& comm, Stream& stream) {
      const trace::Span span(trace::Category::communication, "all_reduce",
                             static_cast<std::int64_t>(count * size_of(dtype)));
      comm.all_reduce(at, at, count, dtype, ReduceOp::sum, stream);
    });
  }

  // The forward pass is over: the loss and the running statistics of all ranks.
  void fire_sums() {
    if (plan.layout.running_bytes > 0)
      submit([this](Communicator& comm, Stream& stream) { running_.reduce(*memory_, comm, stream); });
    submit([this](Communicator& comm, Stream& stream) {
      const trace::Span span(trace::Category::communication, "all_reduce", sizeof totals_);
      ops::LossSums sums;
      device_.copy(&sums, &memory_->block()->sums, sizeof sums, stream);
      stream.synchronize();
      totals_[0] = sums.loss;
      totals_[1] = static_cast<double>(valid_);
      totals_[2] = static_cast<double>(sums.correct);
      double* shared = memory_->block()->totals;
      device_.copy(shared, totals_, sizeof totals_, stream);
      comm.all_reduce(shared, shared, 3, DType::f64, ReduceOp::sum, stream);
      device_.copy(totals_, shared, sizeof totals_, stream);
    });
  }

  // Hands a job to the reducer that begins when the device has done what was enqueued so far.
  void submit(Reducer::Job job) {
    std::shared_ptr<Event> ready = device_.make_event();
    ready->record(*stream_);
    reducer_->submit([ready, job = std::move(job)](Communicator& comm, Stream& stream) {
      ready->synchronize();
      job(comm, stream);
    });
  }

  void finish(StepResult& result) {
    const auto start = Clock::now();
    const trace::Span span(trace::Category::sample, "optimizer");
    if (reducing_) {
      // gradients = sum * loss_scale / expected, while their mean is sum / valid.
      valid_ = static_cast<std::int64_t>(totals_[1]);
      if (valid_ == 0) throw Error("no target of the step is valid: its loss is not defined");
      const double ratio = static_cast<double>(valid_) / static_cast<double>(expected_);
      const auto scale = static_cast<float>(static_cast<double>(scaler_.scale()) * ratio);
      device_.copy(&memory_->block()->state.loss_scale, &scale, sizeof scale, *stream_);
    }
    plan.norm->run(
        *stream_, {.gradient = memory_->gradients(), .state = &memory_->block()->state, .workspace = memory_->arena()});
    plan.optimizer->run(*stream_, {.state = &memory_->block()->state,
                                   .master = memory_->weights(),
                                   .gradient = memory_->gradients(),
                                   .moment1 = memory_->moment(0),
                                   .moment2 = memory_->moment(1),
                                   .workspace = memory_->arena()});
    receive_block();
    gradient_multiplier_ = static_cast<double>(block_.state.loss_scale);
    if (reducing_) {
      block_.sums.loss = totals_[0];
      block_.sums.valid = valid_;
      block_.sums.correct = static_cast<std::int64_t>(totals_[2]);
    }
    take_sums(result);
    result.gradient_norm = static_cast<double>(block_.state.norm);
    result.skipped = block_.state.found_infinity != 0;
    if (!result.skipped) ++step_;
    scaler_.update(result.skipped);
    result.optimizer = seconds_between(start, Clock::now());
  }

  void take_sums(StepResult& result) const {
    result.loss_sum = block_.sums.loss;
    result.valid = block_.sums.valid;
    result.correct = block_.sums.correct;
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
  Buffer staged_;
  LossScaler scaler_;
  std::int64_t step_ = 0;  // taken so far
  StepBlock block_;        // the host's copy
  bool reducing_ = false;
  std::int64_t valid_ = 0, expected_ = 1;
  double gradient_multiplier_ = 1.0;
  double totals_[3] = {0, 0, 0};
  RunningAverage running_;
  std::optional<Reducer> reducer_;  // last: its thread ends first
};

TrainingStep::TrainingStep(const Model& model, const StepOptions& options, Device& device,
                           std::shared_ptr<ops::Backend> backend, Communicator& comm)
    : impl_(std::make_unique<Impl>(model, options, device, std::move(backend), comm)) {}
TrainingStep::~TrainingStep() = default;

const MemoryPlan& TrainingStep::memory() const { return impl_->plan.memory; }
std::string TrainingStep::implementations() const { return impl_->plan.layout.ops.implementations(); }
void TrainingStep::allocate() { impl_->allocate(); }
void TrainingStep::initialise(std::uint64_t seed) { impl_->initialise(seed); }
Inputs TrainingStep::inputs(std::int64_t micro_batch) { return impl_->inputs(micro_batch); }
StepResult TrainingStep::step(double learning_rate, bool reduce) { return impl_->step(learning_rate, reduce); }
StepResult TrainingStep::evaluate() { return impl_->evaluate(); }
std::string TrainingStep::first_non_finite() { return impl_->first_non_finite(); }
float TrainingStep::loss_scale() const { return impl_->loss_scale(); }
std::vector<StatePart> TrainingStep::state() { return impl_->state(); }
std::vector<StatePart> TrainingStep::gradients() { return impl_->gradients(); }

}  // namespace assay::nn
