// The slice family: the step of a whole model, added up from steps with 2 and with 4 of its layers.
#include "harness/comm/gather.h"
#include "harness/core/clock.h"
#include "harness/core/configs.h"
#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "workloads/nn/planning_backend.h"
#include "workloads/nn/step_plan.h"
#include "workloads/training/family.h"
#include "workloads/training/roof.h"
#include "workloads/training/trainer.h"
#include "workloads/transformer/family.h"
#include "workloads/transformer/slice_sum.h"
#include "workloads/transformer/transformer.h"

#include <cmath>
#include <deque>
#include <set>

namespace assay {

namespace {

using parallel::Collective;
using parallel::CollectiveKind;
using transformer::Estimated;
using transformer::few_layers;
using transformer::more_layers;

constexpr std::size_t max_calls = 20;  // timed of each size of a collective

// The family whose cases train a model of that family; null if its layers are not all equal.
const training::ModelFamily* layered_family(std::string_view name) {
  for (const training::ModelFamily* family : {&transformer_models, &llama_models})
    if (family->name == name) return family;
  return nullptr;
}

struct OpenedModel {
  std::optional<transformer::Config> config;  // absent if it cannot be sliced
  std::string why_not;
};

OpenedModel open_file(const std::filesystem::path& file) {
  const Json json = read_json(file);
  // Only files that name it count: a config.json does not.
  const std::string family = json.is_object() && json.contains("family") && json["family"].is_string()
                                 ? json["family"].get<std::string>()
                                 : transformer_models.name;
  if (!layered_family(family)) return {{}, fmt::format("is a {}, whose layers are not all equal", one_line(family))};
  transformer::Config config = transformer::read_config(json, file.string(), training::model_name(file));
  if (config.layers < more_layers) return {{}, fmt::format("has only {} layers", config.layers)};
  return {std::move(config), {}};
}

transformer::Config open_model(const std::string& word) {
  const auto open = [](const std::string& name) { return open_file(find_config("models", "model", name)); };
  OpenedModel opened = open(word);
  if (opened.config) return *std::move(opened.config);
  std::vector<std::string> names;
  for (const std::string& name : config_names("models"))
    if (open(name).config) names.push_back(name);
  throw UsageError(fmt::format("model {} {}; slice adds up equal layers, at least {}{}", in_quotes(word),
                               opened.why_not, more_layers, suggestion(word, names)));
}

// The settings of a case: those of the whole model.
struct SliceSettings {
  transformer::Config config;
  training::Settings whole;
  bool beside_whole = false;

  // Layers of the models that are timed.
  std::vector<std::int64_t> depths() const {
    std::vector<std::int64_t> all = {few_layers, more_layers};
    if (beside_whole) all.push_back(config.layers);
    return all;
  }
  training::Settings with_layers(std::int64_t layers) const {
    transformer::Config part = config;
    part.layers = layers;
    training::Settings settings = whole;
    settings.model = transformer::make_transformer(part);
    return settings;
  }
};

SliceSettings settings_from(const Params& params, int ranks) {
  SliceSettings settings;
  settings.config = open_model(params.text("model"));
  const training::ModelFamily& family = *layered_family(settings.config.family);
  Params of_family = training::default_params(family);
  for (const auto& [name, value] : params.items())
    if (of_family.has(name)) of_family.set(name, value);
  settings.whole = training::settings_from(family, of_family, ranks);
  settings.beside_whole = params.flag("whole");
  return settings;
}

// The models of a case need this together.
nn::MemoryPlan plan_memory(const SliceSettings& settings, DeviceKind device) {
  nn::MemoryPlan sum;
  for (const std::int64_t layers : settings.depths()) {
    const training::Settings part = settings.with_layers(layers);
    sum += nn::plan_memory(*part.model, part.step_options(), {.kind = device});
  }
  return sum;
}

class SliceCase final : public Case {
 public:
  explicit SliceCase(const Params& params) : params_(params) {}

  std::optional<std::string> prepare(Context& context) override {
    context_ = &context;
    settings_ = settings_from(params_, context.inputs.world.ranks);
    data_ = training::open_data(settings_.whole);
    try {
      make_parts();
    } catch (const UsageError& error) {
      return error.what();
    }
    return std::nullopt;
  }

  void setup(Context& context) override {
    Protocol& protocol = context.outputs.protocol;
    protocol.form = Protocol::Form::steps;
    protocol.warmup_seconds = 1;
    protocol.min_samples = 20;
    protocol.max_seconds = 60;
    // The sum has a wider interval than the steps: by about three times with 32 layers.
    protocol.target_relative_ci = 0.003;
    start();
    parts_.back().trainer.describe(context, *data_);
    threads_ = parts_.back().trainer.threads();
    Attributes& labels = context.outputs.labels;
    labels["layers"] = std::to_string(settings_.config.layers);
    labels["planned_memory"] = planned_.text();
    labels["collectives"] = context.comm.size() > 1 ? fmt::format("of zero={} on {} ranks", settings_.whole.layout.zero,
                                                                  context.comm.size())
                                                    : "not timed: one rank sends nothing; add --ranks";
  }

  void measure(Sampler& sampler) override {
    if (parts_.empty()) {
      make_parts();
      start();
    }
    if (last_rank() && context_->inject(Fault::slow_rank))
      for (Part& part : parts_) part.trainer.slow_down();
    for (Part& part : parts_) part.seconds.clear(), part.steps.clear();
    // One step of each is a sample, forwards and backwards in turn: what changes with time changes all of them alike.
    sampler.steps([&](std::int64_t sample) {
      for (std::size_t i = 0; i < parts_.size(); ++i)
        time_step(parts_[sample % 2 == 0 ? i : parts_.size() - 1 - i], sampler);
    });
    const std::size_t measured = sampler.measurement().values.size();
    for (Part& part : parts_) {
      part.steps.erase(part.steps.begin(), part.steps.end() - static_cast<std::ptrdiff_t>(measured));
      part.seconds.erase(part.seconds.begin(), part.seconds.end() - static_cast<std::ptrdiff_t>(measured));
      max_over_ranks(context_->comm, part.seconds);
    }
  }

  void verify(Checks& checks) override {
    bool finite = true;
    double guessed = 0;
    int others = 0;
    times_.clear();
    for (Part& part : parts_) {
      part.trainer.use_threads();
      finite = finite && std::isfinite(part.last_loss);
      // Initial weights are small, so that the first guess is uniform.
      guessed = std::max(guessed, part.first_loss / std::log(static_cast<double>(settings_.config.vocabulary)));
      const std::vector<nn::StatePart> gradients = part.trainer.training_step().gradients();
      if (last_rank() && context_->comm.size() > 1 && context_->inject(Fault::wrong_sum))
        part.trainer.flip_bit(gradients.front());
      others += part.trainer.ranks_that_differ(gradients);
      times_.push_back(transformer::estimated_median(part.seconds));
    }
    checks.that("losses_finite", finite);
    checks.at_most("loss_step_1_over_guess", guessed, 2);
    checks.at_most("ranks_with_other_gradients", others, 0);
    transformer::SliceTimes times{parts_[0].seconds, parts_[1].seconds, {}};
    if (settings_.beside_whole) times.whole = parts_[2].seconds;
    sum_ = transformer::sum_of_slices(times, settings_.config.layers);
    if (!sum_)
      context_->outputs.flags.push_back(fmt::format(
          "a step with {} layers took no longer than one with {}: nothing to add up", more_layers, few_layers));
    if (sum_ && context_->comm.rank() == 0) add_up_spans();
    parts_.clear();  // the buffer of the collectives may need their memory
    time_collectives();
  }

  std::vector<Metric> metrics(const Measurement&) const override {
    std::vector<Metric> all;
    const auto add = [&](std::string name, const std::optional<Estimated>& time, const char* unit = "s") {
      all.push_back(value_metric(std::move(name), time ? std::optional(time->value) : std::nullopt, unit));
      if (time) all.back().ci95 = time->ci95;
    };
    const auto of_sum = [&](Estimated transformer::SliceSum::*member) {
      return sum_ ? std::optional((*sum_).*member) : std::nullopt;
    };
    const auto items =
        static_cast<double>(settings_.whole.global_batch()) * static_cast<double>(settings_.whole.items_per_sample());
    const std::optional<Estimated> step = of_sum(&transformer::SliceSum::step);
    add("predicted_throughput", step ? std::optional(transformer::rate_of(items, *step)) : step,
        settings_.whole.item_unit());
    all.back().better = Better::higher;
    add("predicted_step_time", step);
    const nn::ModelCost cost = settings_.whole.model->cost({1, settings_.whole.seq});
    const double flop = static_cast<double>(settings_.whole.global_batch()) * cost.training;
    add("model_flops", step ? std::optional(transformer::rate_of(flop, *step)) : step, "FLOP/s");
    all.back().better = Better::higher;
    const auto sheet = training::sheet_roof(*context_, settings_.whole.precision, threads_);
    const auto measured = training::measured_roof(*context_, settings_.whole.precision, threads_);
    if (const auto& roof = sheet ? sheet : measured; roof && all.back().value)
      all.back().of_peak = *all.back().value / roof->flops;
    add("mfu", step && sheet ? std::optional(transformer::rate_of(flop / sheet->flops, *step)) : std::nullopt, "1");
    all.back().better = Better::higher;
    add("layer_time", of_sum(&transformer::SliceSum::layer));
    add("outside_layers_time", of_sum(&transformer::SliceSum::outside));
    add("step_time_2_layers", times_[0]);
    add("step_time_4_layers", times_[1]);
    if (settings_.beside_whole) {
      add("whole_step_time", times_[2]);
      add("predicted_over_whole", sum_ ? sum_->over_whole : std::nullopt, "1");
    }
    std::map<CollectiveKind, double> by_kind;
    for (const TimedCollective& each : collectives_)
      by_kind[each.calls.kind] += static_cast<double>(each.calls.count) * each.time.value;
    for (const auto& [kind, seconds] : by_kind) all.push_back(value_metric(word_of(kind), seconds, "s"));
    for (const TimedCollective& each : collectives_)
      add(fmt::format("{}_{}x{}", word_of(each.calls.kind), each.calls.count, each.calls.bytes()), each.time);
    all.push_back(value_metric("planned_memory", static_cast<double>(planned_.total()), "B"));
    return all;
  }

 private:
  // A model in training.
  struct Part {
    Part(Context& context, training::Settings of_part)
        : settings(std::move(of_part)), trainer(context.device, context.comm, settings) {}

    training::Settings settings;
    training::Trainer trainer;
    std::vector<double> seconds = {};             // of its steps; of the slowest rank after measure()
    std::vector<training::StepParts> steps = {};  // the same of this rank, by part
    double first_loss = 0;
    double last_loss = 0;
  };
  struct TimedCollective {
    Collective calls;
    Estimated time;  // of one call
  };

  bool last_rank() const { return context_->comm.rank() == context_->comm.size() - 1; }

  // Where the seconds of the whole model's step go, added up as the step is.
  void add_up_spans() {
    const auto means = [](const Part& part) {
      training::StepParts sum;
      for (const training::StepParts& step : part.steps) sum += step;
      return sum.spans(static_cast<std::int64_t>(part.steps.size()));
    };
    auto spans = means(parts_[0]);
    const auto more = means(parts_[1]);
    const double further =
        static_cast<double>(settings_.config.layers - few_layers) / static_cast<double>(more_layers - few_layers);
    for (std::size_t i = 0; i < spans.size(); ++i)
      spans[i].second = std::max(0.0, spans[i].second + (more[i].second - spans[i].second) * further);
    context_->outputs.spans = std::move(spans);
  }

  void make_parts() {
    planned_ = {};
    for (const std::int64_t layers : settings_.depths()) {
      parts_.emplace_back(*context_, settings_.with_layers(layers));
      planned_ += parts_.back().trainer.memory();
    }
  }

  void start() {
    const std::uint64_t seed = settings_.whole.seed + context_->inputs.seed;
    for (Part& part : parts_) {
      part.trainer.allocate();
      if (context_->device.kind() != DeviceKind::cpu) {
        if (context_->comm.size() > 1) part.trainer.connect();
        part.trainer.warm_up();
      }
      part.trainer.initialise(seed);
      part.trainer.open(data_, seed);
    }
  }

  void time_step(Part& part, Sampler& sampler) {
    part.trainer.use_threads();
    const std::int64_t number = part.trainer.steps() + 1;
    const Clock::time_point start = Clock::now();
    const training::Step step = part.trainer.step(training::timing_rate(settings_.whole.recipe.schedule, number));
    part.seconds.push_back(seconds_since(start));
    part.steps.push_back(step.parts);
    sampler.waited(step.parts.exposed_communication);
    if (number == 1) part.first_loss = step.result.loss;
    part.last_loss = step.result.loss;
  }

  // The calls that a step of the whole model makes, alone: in a step, those of zero=0 overlap the backward pass.
  void time_collectives() {
    collectives_.clear();
    Communicator& comm = context_->comm;
    if (comm.size() == 1) return;
    Device& device = context_->device;
    const nn::StepPlan plan(*settings_.whole.model, settings_.whole.step_options(), nn::profile_of(device),
                            nn::make_planning_backend(device.kind()));
    const std::vector<Collective> groups = parallel::grouped(plan.collectives());
    std::int64_t largest = 0;
    for (const Collective& calls : groups) largest = std::max(largest, calls.bytes());
    const auto stream = device.make_stream();
    const Buffer buffer = device.allocate(static_cast<std::size_t>(largest));
    device.zero(buffer.data(), static_cast<std::size_t>(largest), *stream);
    const double seconds = context_->outputs.protocol.max_seconds / static_cast<double>(groups.size());
    for (const Collective& calls : groups)
      collectives_.push_back({calls, time_of(calls, buffer.as<std::byte>(), *stream, seconds)});
  }

  Estimated time_of(const Collective& calls, std::byte* at, Stream& stream, double max_seconds) {
    Communicator& comm = context_->comm;
    const auto all = static_cast<std::size_t>(calls.elements);
    const std::size_t slice = all / static_cast<std::size_t>(comm.size());
    const auto call = [&] {
      switch (calls.kind) {
        case CollectiveKind::all_reduce: comm.all_reduce(at, at, all, calls.dtype, ReduceOp::sum, stream); break;
        case CollectiveKind::reduce_scatter:
          comm.reduce_scatter(at, at, slice, calls.dtype, ReduceOp::sum, stream);
          break;
        case CollectiveKind::all_gather: comm.all_gather(at, at, slice, calls.dtype, stream); break;
      }
      stream.synchronize();
    };
    call();  // connects
    std::vector<double> seconds;
    const Clock::time_point begin = Clock::now();
    do {
      comm.barrier();
      comm.line_up(stream);
      stream.synchronize();
      const Clock::time_point start = Clock::now();
      call();
      seconds.push_back(seconds_since(start));
    } while (seconds.size() < max_calls && comm.max_of(seconds_since(begin)) < max_seconds);
    max_over_ranks(comm, seconds);
    return transformer::estimated_median(seconds);
  }

  Params params_;
  Context* context_ = nullptr;
  SliceSettings settings_;
  std::shared_ptr<const data::TrainingSet> data_;
  std::deque<Part> parts_;  // of each of depths()
  nn::MemoryPlan planned_;
  int threads_ = 0;
  std::vector<Estimated> times_;  // of each of depths()
  std::optional<transformer::SliceSum> sum_;
  std::vector<TimedCollective> collectives_;
};

std::optional<std::string> conflict(const Params& params, const World& world) {
  try {
    return training::why_too_large(plan_memory(settings_from(params, world.ranks), world.device), world);
  } catch (const UsageError& error) {
    return error.what();
  }
}

Estimate estimate(const Params& params, const World& world) {
  const SliceSettings settings = settings_from(params, world.ranks);
  const training::Settings& whole = settings.whole;
  const auto samples = static_cast<double>(whole.micro_batch * whole.accumulate);
  Estimate estimate;
  estimate.memory_bytes = static_cast<double>(plan_memory(settings, world.device).total());
  for (const std::int64_t layers : settings.depths())
    estimate.flops += samples * settings.with_layers(layers).model->cost({1, whole.seq}).training;
  estimate.items = samples * static_cast<double>(whole.items_per_sample());
  estimate.seconds = training::cautious_seconds(20 * estimate.flops, world);
  return estimate;
}

// A step's time depends on these parameters of a training case.
Schema slice_schema() {
  static const std::set<std::string> of_training = {"model", "precision",     "micro_batch", "accumulate",
                                                    "seq",   "checkpointing", "zero",        "threads"};
  Schema schema;
  for (const ParamSpec& spec : training::training_schema(llama_models))
    if (of_training.contains(spec.name)) schema.push_back(spec);
  schema.push_back(axis::flag("whole").doc("also time the whole model, to see how far the sum is off"));
  return schema;
}

}  // namespace

Family slice_family() {
  return {.name = "slice",
          .summary = "the step of a whole transformer, added up from 2 and 4 of its layers: tokens/s",
          .workload = true,
          .adds_up_slices = true,
          .params = slice_schema(),
          .estimate = estimate,
          .make = make_case_of<SliceCase>,
          .devices = {DeviceKind::cpu, DeviceKind::cuda},
          .complete =
              [](Params& params) {
                try {
                  training::set_counts(settings_from(params, 1).whole, params);
                } catch (const UsageError&) {
                  return;  // conflict() says what is wrong
                }
              },
          .conflict = conflict,
          .faults = {Fault::wrong_sum}};
}

}  // namespace assay
