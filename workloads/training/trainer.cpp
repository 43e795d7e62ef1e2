#include "workloads/training/trainer.h"

#include "harness/comm/gather.h"
#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/trace/trace.h"
#include "workloads/ops/type_support.h"

#include <algorithm>
#include <cmath>

namespace assay::training {

namespace {

data::BatchArrays arrays_of(const nn::Inputs& inputs) {
  return {inputs.ids, inputs.type_ids, inputs.lengths, inputs.images, inputs.targets};
}

// The instruction set of products in this precision.
std::string isa_of(ops::Backend& backend, const nn::Precision& precision) {
  ops::MatmulDesc desc;
  desc.m = desc.n = desc.k = 64;
  desc.a = desc.b = precision.product;
  desc.out = precision.compute;
  auto made = backend.make<ops::Matmul>(desc);
  return made ? made.take()->isa() : "";
}

}  // namespace

StepParts& StepParts::operator+=(const StepParts& other) {
  data_wait += other.data_wait;
  forward += other.forward;
  backward += other.backward;
  exposed_communication += other.exposed_communication;
  optimizer += other.optimizer;
  return *this;
}

std::vector<std::pair<std::string, double>> StepParts::spans(std::int64_t steps) const {
  const auto count = static_cast<double>(std::max<std::int64_t>(1, steps));
  return {{"data_wait", data_wait / count},
          {"forward", forward / count},
          {"backward", backward / count},
          {"exposed_communication", exposed_communication / count},
          {"optimizer", optimizer / count}};
}

Trainer::Trainer(Device& device, Communicator& comm, const Settings& settings)
    : settings_(settings),
      device_(device),
      comm_(comm),
      team_(device.kind() == DeviceKind::cpu ? std::optional<cpu::Team>(cpu::resolve_threads(settings.threads))
                                             : std::nullopt),
      backend_(ops::backend_for(device)) {
  const nn::Precision precision = settings.step_options().precision;
  if (const auto reason = ops::why_no_arithmetic(device, precision.fp8_linear ? DType::fp8_e4m3 : precision.product))
    throw UsageError(*reason);
  step_ = std::make_unique<nn::TrainingStep>(*settings.model, settings.step_options(), device, backend_, comm);
}

void Trainer::allocate() {
  use_threads();
  step_->allocate();
}

void Trainer::warm_up() {
  step_->initialise(0);
  for (std::int64_t i = 0; i < settings_.accumulate; ++i) {
    const nn::Inputs inputs = step_->inputs(i);
    for (const auto integers : {inputs.ids, inputs.type_ids, inputs.targets}) std::ranges::fill(integers, 0);
    std::ranges::fill(inputs.lengths, static_cast<std::int32_t>(settings_.seq));
    std::ranges::fill(inputs.images, 0.0f);
  }
  // The first step enqueues its work; on a GPU the second captures it.
  const int times = device_.kind() == DeviceKind::cpu ? 1 : 2;
  for (int i = 0; i < times; ++i) {
    step_->step(0);
    if (settings_.quality) step_->evaluate();
  }
}

void Trainer::initialise(std::uint64_t seed) {
  step_->initialise(seed);
  steps_ = 0;
}

void Trainer::open(std::shared_ptr<const data::TrainingSet> data, std::uint64_t seed, std::int64_t after) {
  validation_.reset();
  stream_.reset();
  filled_ = false;
  step_->discard_prefetched();
  data_ = std::move(data);
  data::StreamOptions options;
  options.seed = seed;
  options.micro_batch = settings_.micro_batch;
  options.rank = comm_.rank();
  options.world = comm_.size();
  // Equal for the ranks of any world, whose steps take the same samples if their global batch is the same.
  options.first = after * settings_.accumulate;
  options.cpus = cpu::rank_cpus();
  options.workers = workers();
  stream_ = std::make_unique<data::TrainingStream>(data_, options);
}

// On a CPU, decoding uses all cores, and generating, which is cheap, one. On a GPU the cores are free for the data, but
// for the one of the thread that feeds the GPU: beyond the cgroup's quota the kernel would stop that thread, too.
int Trainer::workers() const {
  constexpr int max_workers = 16;
  if (device_.kind() != DeviceKind::cpu) return std::clamp(cpu::resolve_threads("all") - 1, 1, max_workers);
  return settings_.path != generated_path && settings_.seq == 0 ? threads() : 1;
}

double Trainer::fill() {
  const trace::Span span(trace::Category::data, "data_wait");
  const Clock::time_point start = Clock::now();
  for (std::int64_t i = 0; i < settings_.accumulate; ++i) stream_->next(arrays_of(step_->inputs(i)));
  if (late_data_) std::this_thread::sleep_for(std::chrono::duration<double>(last_seconds_));
  return seconds_since(start);
}

Step Trainer::step(double learning_rate, const nn::Exchange& exchange) {
  Step step;
  const Clock::time_point start = Clock::now();
  if (!filled_) step.parts.data_wait = fill();
  filled_ = false;
  // While a GPU runs this step, make and send the next batch.
  step.result = step_->step(learning_rate, exchange, [this] {
    fill();
    step_->prefetch_inputs();
    filled_ = true;
  });
  ++steps_;
  step.parts.data_wait += step.result.idle;
  step.parts.forward = step.result.forward;
  step.parts.backward = step.result.backward;
  step.parts.exposed_communication = step.result.exposed_communication + step.result.exposed_gather;
  step.parts.optimizer = step.result.optimizer;
  if (slow_) {
    const double seconds = seconds_since(start), end = 2 * seconds - step.parts.exposed_communication;
    while (seconds_since(start) < end) {
    }
  }
  if (stalls_ && steps_ % 20 == 0)
    std::this_thread::sleep_for(std::chrono::duration<double>(10 * last_seconds_));
  else
    last_seconds_ = seconds_since(start) - step.parts.data_wait;
  // Without gathering, divided weights are not the model's.
  if (exchange.gather || !settings_.layout.divides(3)) refuse_non_finite(step.result);
  return step;
}

void Trainer::flip_bit(const nn::StatePart& part) {
  const auto stream = device_.make_stream();
  auto* at = static_cast<std::byte*>(part.data) + size_of(part.dtype) - 2;
  std::byte byte{};
  device_.copy(&byte, at, 1, *stream);
  stream->synchronize();
  byte ^= std::byte{0x40};
  device_.copy(at, &byte, 1, *stream);
  stream->synchronize();
}

// Vectors stay whole, however much ranks divide.
bool Trainer::held_by_all(const nn::StatePart& part) const {
  if (!settings_.layout.divides()) return true;
  if (!part.name.starts_with("weights/")) return !part.name.starts_with("moment");
  const nn::Precision precision = settings_.step_options().precision;
  return part.shape.size() == 1 || (!settings_.layout.divides(3) && precision.param == precision.master);
}

const nn::StatePart& Trainer::common_weight(const std::vector<nn::StatePart>& state) const {
  const auto common = std::ranges::find_if(state, [this](const auto& part) { return held_by_all(part); });
  ASSAY_CHECK(common != state.end(), "ranks have no state in common");
  return *common;
}

// Every rank sees the same loss and reduced gradients, so all throw together.
void Trainer::refuse_non_finite(const nn::StepResult& result) {
  const bool scaled = nn::precision_from(settings_.precision).loss_scaling;
  const bool finite = std::isfinite(result.loss);
  // A scaled gradient may overflow: the step is skipped and the scale reduced.
  if (finite && (!result.skipped || scaled)) return;
  const std::string culprit = step_->first_non_finite();
  throw Error(fmt::format("{} not finite at step {}: first in {}", finite ? "a gradient is" : "the loss is", steps_,
                          culprit.empty() ? "the loss itself" : culprit));
}

Evaluation Trainer::evaluate() {
  const trace::Span span(trace::Category::sample, "evaluate");
  if (!validation_) {
    data::StreamOptions options;
    options.split = data::Split::validation;
    options.micro_batch = settings_.micro_batch;
    options.rank = comm_.rank();
    options.world = comm_.size();
    options.cpus = cpu::rank_cpus();
    validation_ = std::make_unique<data::TrainingStream>(data_, options);
  }
  Evaluation all;
  struct Sums {
    double loss = 0, valid = 0, correct = 0, samples = 0;
  };
  Sums own, sums;
  for (std::int64_t i = 0; i < validation_->epoch(); ++i) {
    const data::FilledBatch filled = validation_->next(arrays_of(step_->inputs(0)));
    // Ranks that gather weights in the forward pass run it together, with or without samples.
    if (filled.samples == 0 && !settings_.layout.divides(3)) continue;
    const nn::StepResult result = step_->evaluate();
    if (filled.samples == 0) continue;
    own.loss += result.loss_sum;
    own.valid += static_cast<double>(result.valid);
    own.correct += static_cast<double>(result.correct);
    own.samples += static_cast<double>(filled.samples);
    if (result.valid > 0)
      all.batches.push_back({filled.first, filled.samples, result.loss_sum / static_cast<double>(result.valid)});
  }
  for (const Sums& each : gather(comm_, own)) {
    sums.loss += each.loss;
    sums.valid += each.valid;
    sums.correct += each.correct;
    sums.samples += each.samples;
  }
  all.samples = std::llround(sums.samples);
  if (sums.valid == 0) throw Error("the validation set has no valid target");
  all.loss = sums.loss / sums.valid;
  all.accuracy = sums.correct / sums.valid;
  if (!std::isfinite(all.loss))
    throw Error(fmt::format("the loss of the evaluation after step {} is not finite", steps_));
  return all;
}

Transfer Trainer::save(const std::filesystem::path& file, const CheckpointIdentity& identity, Json meta) {
  meta["steps"] = steps_;
  const CheckpointNotes notes{
      identity,
      fmt::format("{} rank{}, zero {}, micro_batch {}, accumulate {}", comm_.size(), comm_.size() == 1 ? "" : "s",
                  settings_.layout.zero, settings_.micro_batch, settings_.accumulate),
      std::move(meta)};
  return write_checkpoint(file, notes, step_->state(), device_, comm_);
}

CheckpointNotes Trainer::restore(const std::filesystem::path& file, const CheckpointIdentity& identity,
                                 Transfer* transfer) {
  CheckpointNotes notes = read_checkpoint(file, identity, step_->state(), device_, comm_, transfer);
  steps_ = notes.meta.value("steps", std::int64_t{0});
  return notes;
}

int Trainer::ranks_that_differ(const std::vector<nn::StatePart>& parts) {
  if (comm_.size() == 1) return 0;
  const std::vector<Holders> holders = holders_of(parts, comm_);
  std::uint64_t sum = 0;
  std::vector<std::byte> host;
  const auto stream = device_.make_stream();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const nn::StatePart& part = parts[i];
    if (holders[i].count < comm_.size()) continue;  // ranks hold different parts of it
    const auto* bytes = static_cast<const std::byte*>(part.data);
    if (device_.kind() != DeviceKind::cpu && part.bytes > 0) {
      host.resize(part.bytes);
      device_.copy(host.data(), part.data, part.bytes, *stream);
      stream->synchronize();
      bytes = host.data();
    }
    sum = sum * 31 + checksum({bytes, part.bytes});
  }
  const std::vector<std::uint64_t> sums = gather(comm_, sum);
  return static_cast<int>(sums.size()) - static_cast<int>(std::ranges::count(sums, sums.front()));
}

void Trainer::describe(Context& context, const data::TrainingSet& set) const {
  Attributes& conditions = context.outputs.conditions;
  conditions["model"] = settings_.model->name();
  conditions["recipe"] = settings_.recipe.model;
  conditions["data"] = set.name();
  if (const std::int64_t samples = set.samples(data::Split::train); samples > 0)
    conditions["epoch_samples"] = std::to_string(samples);  // reports price an epoch by it
  if (settings_.seq > 0) conditions["seq"] = std::to_string(settings_.seq);
  if (settings_.step_options().precision.fp8_linear)
    conditions["fp8"] =
        fmt::format("linear layers of blocks, e4m3 and e5m2 of gradients; scales by {} steps, margin {}",
                    nn::fp8_scaling.history, nn::fp8_scaling.margin);

  Attributes& choices = context.outputs.choices;
  choices["implementation"] = step_->implementations();
  if (const std::string isa = isa_of(*backend_, settings_.step_options().precision); !isa.empty()) choices["isa"] = isa;
  if (team_) choices["threads"] = std::to_string(team_->size());
  if (const std::string graph = step_->graph(); !graph.empty()) choices["graph"] = graph;

  // The batch is the protocol's; it changes with the world size.
  Attributes& labels = context.outputs.labels;
  labels["global_batch"] = std::to_string(settings_.global_batch());
  labels["micro_batch"] = std::to_string(settings_.micro_batch);
  labels["accumulate"] = std::to_string(settings_.accumulate);
  labels["loader_workers"] = std::to_string(workers());
  labels["libraries"] = backend_->libraries();
  if (comm_.size() > 1) labels["communication"] = comm_.implementation();
  if (step_->gradients_are_registered()) labels["gradient_buffers"] = "registered";
  if (const std::string found = step_->choices(); !found.empty()) labels["choices"] = found;

  auto& details = context.outputs.protocol.details;
  if (choices.contains("isa")) details["isa"] = choices["isa"];
  details["data_set"] = conditions["data"];
  // The values behind "recipe" in the key.
  for (const char* name : {"global_batch", "micro_batch"}) details[name] = labels[name];
  if (conditions.contains("seq")) details["seq"] = conditions["seq"];
  context.outputs.protocol.data = settings_.path == generated_path ? "generated" : "files";
  context.outputs.protocol.cache = Protocol::Cache::none;
}

}  // namespace assay::training
