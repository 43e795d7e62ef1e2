#include "workloads/training/cases.h"

#include "harness/comm/gather.h"
#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/units.h"
#include "harness/device/memory_watch.h"
#include "harness/record/flags.h"
#include "harness/record/record.h"
#include "workloads/training/case_files.h"
#include "workloads/training/planned_memory.h"
#include "workloads/training/roof.h"
#include "workloads/training/trainer.h"

#include <algorithm>
#include <cmath>

namespace assay::training {

namespace {

constexpr std::int64_t loss_step = 10;     // of the metric loss_step_10
constexpr double min_extra_seconds = 10;   // for steps that only checks need, beside short measurements
constexpr double max_extra_seconds = 120;  // the same beside long ones
constexpr std::size_t max_pairs = 20;      // of steps with and without the compared feature
constexpr std::size_t repeated_steps = 2;
// The largest relative difference of a loss a few steps after sums were added up in another order.
constexpr double other_order = 1e-3;
constexpr std::size_t max_losses_kept = 10000;
constexpr std::uint64_t memory_checked = 1 << 30;
constexpr double memory_tolerance = 0.02;

class ThroughputCase final : public Case {
 public:
  ThroughputCase(const ModelFamily& family, const Params& params) : family_(family), params_(params) {}

  std::optional<std::string> prepare(Context& context) override {
    started_ = Clock::now();
    settings_ = settings_from(family_, params_, context.inputs.world.ranks);
    data_ = open_data(settings_);
    try {
      trainer_.emplace(context.device, context.comm, settings_);
    } catch (const UsageError& error) {
      return error.what();
    }
    const auto free = context.device.free_bytes();
    const std::uint64_t planned = trainer_->memory().total();
    if (free && planned > *free) {
      context.outputs.flags.emplace_back(flag::does_not_fit);
      return fmt::format("{}: {} bytes are planned ({}), {} bytes are free ({})", flag::does_not_fit, planned,
                         trainer_->memory().text(), *free, format_bytes(static_cast<double>(*free)));
    }
    return std::nullopt;
  }

  void setup(Context& context) override {
    context_ = &context;
    files_.emplace(context, settings_, *data_, params_.key(family_.name));
    if (context.inputs.run_dir.empty()) settings_.save_every = 0;
    Protocol& protocol = context.outputs.protocol;
    protocol.form = Protocol::Form::steps;
    protocol.warmup_seconds = 1;
    protocol.min_samples = static_cast<int>(loss_step);
    protocol.max_seconds = 30;
    start(context);
    trainer_->describe(context, *data_);
    describe_cost(context);
  }

  void measure(Sampler& sampler) override {
    if (!trainer_) start(*context_);
    trainer_->use_threads();
    steps_.clear();
    if (last_rank() && context_->inject(Fault::slow_rank)) trainer_->slow_down();
    const Clock::time_point began = Clock::now();
    if (context_->inject(Fault::slow_loader)) trainer_->slow_loader();
    if (context_->inject(Fault::stall)) trainer_->stall();
    sampler.steps([this, &sampler](std::int64_t) {
      steps_.push_back(train_one());
      sampler.waited(steps_.back().parts.exposed_communication);
    });
    warm_ = steps_.size() - sampler.measurement().values.size();
    step_seconds_ = sampler.measurement().summary.median;
    measuring_seconds_ = seconds_since(began);
  }

  void verify(Checks& checks) override {
    trainer_->use_threads();
    reach_loss_step();
    check_losses(checks);
    // Losses depend on all ranks, which may have chosen different ops.
    repeats_ = context_->comm.max_of(trainer_->training_step().repeats() ? 0 : 1) < 0.5;
    context_->outputs.labels["repeats"] = repeats_ ? "to the bit" : "up to rounding";
    // Ranks that divide gradients have none in common; a wrong sum is then one of those that they gathered.
    const bool divides = settings_.layout.divides();
    const std::vector<nn::StatePart> gradients = trainer_->training_step().gradients();
    const std::vector<nn::StatePart> state = trainer_->training_step().state();
    if (context_->comm.size() > 1 && last_rank() && context_->inject(Fault::wrong_sum))
      trainer_->flip_bit(divides ? trainer_->common_weight(state) : gradients.front());
    if (!divides) checks.at_most("ranks_with_other_gradients", trainer_->ranks_that_differ(gradients), 0);
    checks.at_most("ranks_with_other_weights", trainer_->ranks_that_differ(state), 0);
    peak_bytes_ = memory_watch_->peak();
    check_memory(checks);
    check_unusable(*data_, checks);
    if (settings_.save_every > 0) check_resume(checks);
    if (context_->comm.size() > 1) compare_without_exchange();
    check_repetition(checks);
    fill_record();
    if (settings_.checkpointing != nn::Checkpointing::none && !extra_seconds_) compare_without_checkpointing();
  }

  std::vector<Metric> metrics(const Measurement& measured) const override;

 private:
  // Allocates, then starts or resumes training.
  void start(Context& context) {
    if (!trainer_) trainer_.emplace(context.device, context.comm, settings_);
    memory_watch_.emplace(context.device);
    trainer_->allocate();
    const bool gpu = context.device.kind() != DeviceKind::cpu;
    connect(context);
    if (gpu) trainer_->warm_up();
    const std::uint64_t seed = settings_.seed + context.inputs.seed;
    damage_image(*data_, seed, context);
    losses_.clear();
    loss_at_.clear();
    auto notes = files_->resume(*trainer_);
    if (notes)
      context.outputs.flags.push_back(fmt::format("resumed from step {}", trainer_->steps()));
    else
      notes = begin(seed);
    trainer_->open(data_, seed, trainer_->steps());
    if (notes)
      for (const Json& loss : notes->meta.value("losses", Json::array())) losses_.push_back(loss.get<double>());
    loss_at_.assign(losses_.size(), 0);
  }

  // The state before the case's first step: initial, or that of the checkpoint to continue from.
  std::optional<CheckpointNotes> begin(std::uint64_t seed) {
    trainer_->initialise(seed);
    return files_->continue_from(*trainer_);
  }

  // NCCL allocates at its first calls and keeps what it has; MPI copies what it reduces, in each call.
  void connect(Context& context) {
    if (context.comm.size() == 1) return;
    const MemoryWatch watch(context.device);
    trainer_->connect();
    if (!communication_) communication_ = watch.growth();
  }

  Step train_one() {
    const Step step = trainer_->step(timing_rate(settings_.recipe.schedule, trainer_->steps() + 1));
    if (losses_.size() < max_losses_kept) {
      losses_.push_back(step.result.loss);
      loss_at_.push_back(seconds_since(started_));
    }
    if (settings_.save_every > 0 && trainer_->steps() % settings_.save_every == 0)
      written_.add(files_->save(*trainer_, {{"losses", losses_}}));
    return step;
  }

  // Slow steps may have hit the time limit before the tenth: runs the missing ones untimed. Not if the plan asks for
  // fewer samples, nor if verification would then take longer than measuring.
  void reach_loss_step() {
    if (context_->outputs.protocol.min_samples < loss_step) return;
    const std::int64_t missing = loss_step - trainer_->steps();
    constexpr auto checking = static_cast<std::int64_t>(repeated_steps) + 1;  // check_repetition, check_learning
    const double seconds = static_cast<double>(missing + checking) * step_seconds_;
    const double budget = std::clamp(measuring_seconds_, min_extra_seconds, max_extra_seconds);
    if (missing <= 0 || context_->comm.max_of(seconds - budget) > 0) return;
    while (trainer_->steps() < loss_step) train_one();
  }

  void check_losses(Checks& checks) const {
    // A non-finite step has already ended the case with an error; this documents it in the record.
    const auto finite = [](double loss) { return std::isfinite(loss); };
    checks.that("losses_finite", !losses_.empty() && std::ranges::all_of(losses_, finite));
    // Initial weights are small, so that the first guess is uniform.
    const double guess = std::log(static_cast<double>(classes()));
    if (!losses_.empty()) checks.at_most("loss_step_1_over_guess", losses_.front() / guess, 2);
  }

  bool last_rank() const { return context_->comm.rank() == context_->comm.size() - 1; }
  std::int64_t classes() const { return settings_.model->input().classes; }

  void check_memory(Checks& checks) {
    growth_ = memory_watch_->growth();
    if (!growth_) return;
    // Samples made ahead are in host memory.
    const bool host = context_->device.kind() == DeviceKind::cpu;
    const double ahead = host ? static_cast<double>(trainer_->prefetch_bytes()) : 0.0;
    const double planned = static_cast<double>(trainer_->memory().total()) + ahead;
    const double communication = communication_.value_or(0);
    if (trainer_->memory().total() >= memory_checked)
      checks.at_most(
          "planned_memory",
          share_off_plan(planned, *growth_ - communication, host ? 0.0 : static_cast<double>(gpu_libraries_bytes)),
          memory_tolerance,
          {fmt::format("planned {}, of which {} for samples made ahead, grew by {}, of which {} by "
                       "connecting ranks",
                       format_bytes(planned), format_bytes(ahead), format_bytes(*growth_),
                       format_bytes(communication))});
  }

  // Saves, trains on, restores and trains the same steps again.
  void check_resume(Checks& checks) {
    constexpr int steps = 3;
    const std::uint64_t seed = settings_.seed + context_->inputs.seed;
    written_.add(files_->save(*trainer_, {{"losses", losses_}}));
    std::vector<double> straight, again;
    for (int i = 0; i < steps; ++i) straight.push_back(train_one_unsaved().result.loss);
    Transfer read;
    files_->restore(*trainer_, read);
    trainer_->open(data_, seed, trainer_->steps());
    read_ = read;
    for (int i = 0; i < steps; ++i) again.push_back(train_one_unsaved().result.loss);
    std::vector<std::string> detail;
    for (int i = 0; i < steps; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (!as_before(at, straight[at], again[at]))
        detail.push_back(fmt::format("step {} after it: {} and {}", i + 1, straight[at], again[at]));
    }
    checks.at_most("losses_after_resume_that_differ", static_cast<double>(detail.size()), 0, detail);
  }

  // Whether a repeated step has its old loss, `steps` steps after both had the same state.
  bool as_before(std::size_t steps, double then, double now) const {
    return repeats_ || steps == 0 ? now == then : std::abs(now - then) <= other_order * std::abs(then);
  }

  // Repeats the case's first steps, which must give the same losses: bit by bit if all ops repeat their bits. Detects
  // bits that flip in memory or arithmetic.
  void check_repetition(Checks& checks) {
    if (context_->comm.max_of(static_cast<double>(repeated_steps) * step_seconds_) > max_extra_seconds) return;
    const std::uint64_t seed = settings_.seed + context_->inputs.seed;
    begin(seed);
    trainer_->open(data_, seed, trainer_->steps());
    const auto first = static_cast<std::size_t>(trainer_->steps());
    const std::size_t steps = first < losses_.size() ? std::min(repeated_steps, losses_.size() - first) : 0;
    const std::vector<nn::StatePart> state = trainer_->training_step().state();
    if (last_rank() && context_->inject(Fault::bit_flip)) trainer_->flip_bit(state.front());
    std::vector<std::string> detail;
    for (std::size_t i = 0; i < steps; ++i) {
      const double loss = train_one_unsaved().result.loss;
      const double before = losses_[first + i];
      if (!as_before(i, before, loss)) detail.push_back(fmt::format("step {}: {} and {}", first + i + 1, before, loss));
    }
    checks.at_most("losses_that_do_not_repeat", static_cast<double>(detail.size()), 0, detail);
    check_learning(checks);
  }

  // Trains on the first batch again, after a few steps: a model that learns has a lower loss on it. The losses of other
  // batches differ too much from one another to show this within a few steps.
  void check_learning(Checks& checks) {
    if (losses_.empty()) return;
    trainer_->open(data_, settings_.seed + context_->inputs.seed);
    const double again = train_one_unsaved().result.loss;
    checks.that("first_batch_learned", again < losses_.front(),
                {fmt::format("loss {}, then {}", losses_.front(), again)});
  }

  Step train_one_unsaved() { return trainer_->step(timing_rate(settings_.recipe.schedule, trainer_->steps() + 1)); }

  // Alternates steps with and without what ranks exchange. The rate is 0, since weights of ranks would diverge without
  // it.
  void compare_without_exchange() {
    Communicator& comm = context_->comm;
    const auto stream = context_->device.make_stream();
    const auto timed = [&](const nn::Exchange& exchange) {
      comm.barrier();
      comm.line_up(*stream);
      stream->synchronize();
      const Clock::time_point start = Clock::now();
      trainer_->step(0, exchange);
      return seconds_since(start);
    };
    const bool divides = settings_.layout.divides();
    constexpr nn::Exchange all = {}, none = {false, false}, without_reduce = {false, true},
                           without_gather = {true, false};
    // The first two steps of a kind also make a graph: do not time them.
    if (context_->device.kind() != DeviceKind::cpu)
      for (int i = 0; i < 2; ++i) {
        timed(none);
        if (divides) timed(without_reduce), timed(without_gather);
      }
    const Clock::time_point start = Clock::now();
    std::vector<double> exposed, skew, transfer, data, gather;
    const double max_seconds =
        comm.broadcast_value(std::max(context_->outputs.protocol.max_seconds, 5 * step_seconds_));
    do {
      const double on = comm.max_of(timed(all));
      const double own = timed(none);
      const double slowest = comm.max_of(own);
      const double mean = sum_over_ranks(comm, own) / comm.size();
      exposed.push_back(on - mean);
      skew.push_back(slowest - mean);
      transfer.push_back(on - slowest);
      if (!divides) continue;
      data.push_back(on - comm.max_of(timed(without_reduce)));
      gather.push_back(on - comm.max_of(timed(without_gather)));
    } while (exposed.size() < max_pairs && comm.max_of(seconds_since(start)) < max_seconds);
    exposed_ = median(exposed);
    skew_ = median(skew);
    transfer_ = median(transfer);
    if (!divides) return;
    exposed_data_ = median(data);
    exposed_gather_ = median(gather);
  }

  // Measures what activation checkpointing costs and saves, by the same steps without it. Frees the case's trainer to
  // make room; another measure() starts a new one.
  void compare_without_checkpointing() {
    Context& context = *context_;
    Settings plain = settings_;
    plain.checkpointing = nn::Checkpointing::none;
    const double with_growth = growth_.value_or(0) - communication_.value_or(0);
    const bool grew = growth_.has_value();
    trainer_.reset();
    {
      Trainer other(context.device, context.comm, plain);
      const MemoryWatch watch(context.device);
      saved_planned_ = static_cast<double>(other.memory().total()) - static_cast<double>(memory_.total());
      try {
        other.allocate();
      } catch (const Error& error) {
        context.outputs.flags.push_back(fmt::format("without checkpointing it does not fit: {}", error.what()));
        return;
      }
      if (context.device.kind() != DeviceKind::cpu) other.warm_up();
      other.initialise(settings_.seed + context.inputs.seed);
      other.open(data_, settings_.seed + context.inputs.seed);
      // As many as the checkpointed ones take the time for; ranks do not agree in between, as in the measured steps.
      const double fit = context.outputs.protocol.max_seconds / step_seconds_;
      std::vector<double> seconds(static_cast<std::size_t>(std::clamp(fit, 1.0, double{max_pairs})));
      other.step(timing_rate(settings_.recipe.schedule, 1));
      for (double& each : seconds) {
        const Clock::time_point begin = Clock::now();
        other.step(timing_rate(settings_.recipe.schedule, other.steps() + 1));
        each = seconds_since(begin);
      }
      max_over_ranks(context.comm, seconds);
      extra_seconds_ = step_seconds_ - median(seconds);
      const std::optional<double> growth = watch.growth();
      if (growth && grew) saved_measured_ = *growth - with_growth;
    }
  }

  void describe_cost(Context& context) {
    cost_ = settings_.model->cost({1, settings_.seq});
    roof_ = sheet_roof(context, settings_.precision, trainer_->threads());
    measured_roof_ = measured_roof(context, settings_.precision, trainer_->threads());
    context.outputs.labels["formula"] = cost_.formula;
    context.outputs.labels["peak"] = roof_ ? roof_->source : "no sheet gives this machine's peak";
    if (measured_roof_) context.outputs.labels["peak_measured"] = measured_roof_->source;
    memory_ = trainer_->memory();
    moved_ = trainer_->training_step().communication_bytes();
    context.outputs.labels["planned_memory"] = memory_.text();
  }

  // Spans and losses of the measured steps.
  void fill_record() const {
    if (context_->comm.rank() != 0) return;
    StepParts sum;
    for (std::size_t i = warm_; i < steps_.size(); ++i) sum += steps_[i].parts;
    context_->outputs.spans = sum.spans(static_cast<std::int64_t>(steps_.size() - warm_));
    context_->outputs.series["loss"] = {"1", loss_at_, {losses_.begin(), losses_.end()}};
  }

  const ModelFamily& family_;
  Params params_;
  Context* context_ = nullptr;
  Clock::time_point started_;
  Settings settings_;
  std::shared_ptr<const data::TrainingSet> data_;
  std::optional<Trainer> trainer_;
  std::optional<CaseFiles> files_;
  nn::ModelCost cost_;
  nn::MemoryPlan memory_;
  parallel::Moved moved_;  // by a step
  std::optional<Roof> roof_, measured_roof_;

  std::vector<Step> steps_;  // of the last measure(), warm-up included
  std::size_t warm_ = 0;
  double step_seconds_ = 0;
  double measuring_seconds_ = 0;  // with warm-up
  bool repeats_ = true;           // all ops of all ranks repeat their bits
  std::vector<double> losses_;    // from the first step on
  std::vector<double> loss_at_;   // seconds since the case began; 0 for steps before a resume
  std::optional<MemoryWatch> memory_watch_;
  std::optional<std::uint64_t> peak_bytes_;
  std::optional<double> communication_;  // bytes that NCCL allocated when it connected the ranks
  std::optional<double> growth_, exposed_, exposed_data_, exposed_gather_, skew_, transfer_, extra_seconds_,
      saved_planned_, saved_measured_;
  Transfer written_;
  std::optional<Transfer> read_;
};

std::vector<Metric> ThroughputCase::metrics(const Measurement& measured) const {
  const auto samples = static_cast<double>(settings_.global_batch());
  const double items = samples * static_cast<double>(settings_.items_per_sample());
  const auto steps = static_cast<double>(measured.values.size());
  // Work over the wall time of the window: a median would hide stalls.
  const double per_second = measured.window_seconds > 0 ? steps / measured.window_seconds : 0;
  std::optional<Interval> interval = mean_interval(measured.values);
  if (interval && interval->low <= 0) interval.reset();
  const auto rate = [&](const char* name, double amount, const char* unit) {
    Metric made =
        value_metric(name, per_second > 0 ? std::optional(amount * per_second) : std::nullopt, unit, Better::higher);
    if (interval) made.ci95 = Interval{amount / interval->high, amount / interval->low};
    return made;
  };
  std::vector<Metric> all;
  all.push_back(rate("throughput", items, settings_.item_unit()));
  all.push_back(time_metric("step_time", measured));
  all.push_back(rate("model_flops", samples * cost_.training, "FLOP/s"));
  if (measured_roof_ && all.back().value) all.back().of_peak = *all.back().value / measured_roof_->flops;
  if (roof_ && all.back().value) all.back().of_peak = *all.back().value / roof_->flops;
  const auto of_roof = [&](const char* name, double flops) {
    return roof_ ? rate(name, samples * flops / roof_->flops, "1") : value_metric(name, {}, "1", Better::higher);
  };
  all.push_back(of_roof("mfu", cost_.training));
  if (cost_.training_full_attention > cost_.training)
    all.push_back(of_roof("mfu_full_attention", cost_.training_full_attention));
  if (context_->device.kind() != DeviceKind::cpu) {
    double parts = 0;
    for (std::size_t i = warm_; i < steps_.size(); ++i) parts += steps_[i].parts.sum();
    const std::optional<double> overhead =
        measured.window_seconds > 0 ? std::optional(std::max(0.0, 1 - parts / measured.window_seconds)) : std::nullopt;
    all.push_back(value_metric("step_overhead", overhead, "1"));
  }
  if (context_->comm.size() == 1) {
    all.push_back(value_metric("exposed_communication", 0.0, "s"));
  } else {
    all.push_back(value_metric("exposed_communication", exposed_, "s"));
    if (settings_.layout.divides()) {
      all.push_back(value_metric("exposed_communication_data", exposed_data_, "s"));
      all.push_back(value_metric("exposed_communication_gather", exposed_gather_, "s"));
    }
    all.push_back(value_metric("arrival_skew", skew_, "s"));
    all.push_back(value_metric("transfer", transfer_, "s"));
    double cpu = 0;
    for (std::size_t i = warm_; i < steps_.size(); ++i) cpu += steps_[i].result.communication_cpu;
    // On a GPU the host's threads do not communicate.
    if (context_->device.kind() == DeviceKind::cpu)
      all.push_back(value_metric("communication_cpu", steps > 0 ? std::optional(cpu / steps) : std::nullopt, "s"));
  }
  if (context_->comm.size() > 1) {
    all.push_back(value_metric("communication_bytes_data", static_cast<double>(moved_.gradients), "B"));
    if (settings_.layout.divides())
      all.push_back(value_metric("communication_bytes_gather", static_cast<double>(moved_.weights), "B"));
  }
  const bool ten = losses_.size() >= loss_step;
  all.push_back(value_metric("loss_step_10", ten ? std::optional(losses_[loss_step - 1]) : std::nullopt, "1"));
  const auto bytes = [](std::uint64_t count) { return static_cast<double>(count); };
  all.push_back(value_metric("peak_memory", peak_bytes_ ? std::optional(bytes(*peak_bytes_)) : std::nullopt, "B"));
  all.push_back(value_metric("memory_growth", growth_, "B"));
  if (context_->comm.size() > 1) all.push_back(value_metric("communication_memory", communication_, "B"));
  all.push_back(value_metric("planned_memory", bytes(memory_.total()), "B"));
  all.push_back(value_metric("planned_weights", bytes(memory_.weights), "B"));
  all.push_back(value_metric("planned_gradients", bytes(memory_.gradients), "B"));
  all.push_back(value_metric("planned_optimizer", bytes(memory_.optimizer), "B"));
  all.push_back(value_metric("planned_activations", bytes(memory_.activations), "B"));
  all.push_back(value_metric("planned_workspace", bytes(memory_.workspace), "B"));
  if (memory_.communication > 0)
    all.push_back(value_metric("planned_communication", bytes(memory_.communication), "B"));
  if (settings_.checkpointing != nn::Checkpointing::none) {
    all.push_back(value_metric("checkpointing_time", extra_seconds_, "s"));
    all.push_back(value_metric("checkpointing_saved", saved_measured_, "B", Better::higher));
    all.push_back(value_metric("checkpointing_saved_planned", saved_planned_, "B", Better::higher));
  }
  if (settings_.save_every > 0) {
    all.push_back(rate_metric("checkpoint_write", written_));
    all.push_back(rate_metric("checkpoint_read", read_.value_or(Transfer())));
  }
  return all;
}

}  // namespace

std::unique_ptr<Case> make_throughput_case(const ModelFamily& family, const Params& params) {
  return std::make_unique<ThroughputCase>(family, params);
}

}  // namespace assay::training
