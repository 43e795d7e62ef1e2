#include "workloads/training/cases.h"

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/device/memory_watch.h"
#include "workloads/training/case_files.h"
#include "workloads/training/run_log.h"
#include "workloads/training/scoring.h"
#include "workloads/training/target.h"
#include "workloads/training/trainer.h"

#include <algorithm>
#include <cmath>

namespace assay::training {

namespace {

constexpr double max_errors_beyond_bound = 4;

// A series of the record that grows during the runs.
struct Curve {
  std::vector<double> at, values;

  void add(double seconds, double value) {
    constexpr std::size_t max_values = 20000;
    if (values.size() >= max_values) return;
    at.push_back(seconds);
    values.push_back(value);
  }
  Series series() const { return {"1", at, {values.begin(), values.end()}}; }
  Json json() const { return {{"at", at}, {"values", values}}; }
  void restore(const Json& json) {
    at = json.at("at").get<std::vector<double>>();
    values = json.at("values").get<std::vector<double>>();
  }
};

class QualityCase final : public Case {
 public:
  QualityCase(const ModelFamily& family, const Params& params) : family_(family), params_(params) {}

  std::optional<std::string> prepare(Context& context) override {
    started_ = Clock::now();
    settings_ = settings_from(family_, params_, context.inputs.world.ranks);
    try {
      trainer_.emplace(context.device, context.comm, settings_);
    } catch (const UsageError& error) {
      return error.what();
    }
    return std::nullopt;
  }

  void setup(Context& context) override {
    context_ = &context;
    if (context.inputs.run_dir.empty()) settings_.save_every = 0;
    const auto set = open_data(settings_);
    files_.emplace(context, settings_, *set, params_.key(family_.name));
    goal_.emplace(settings_, set);
    context.outputs.protocol.form = Protocol::Form::procedure;
    memory_watch_.emplace(context.device);
    trainer_->allocate();
    // Pages and kernels of the first step and evaluation are made before the clock starts, with dummy inputs.
    trainer_->warm_up();
    trainer_->describe(context, *set);
    context.outputs.conditions["target"] = goal_->text();
  }

  void measure(Sampler& sampler) override {
    trainer_->use_threads();
    runs_.clear();
    resume_.reset();
    sampler_ = &sampler;
    const bool last = context_->comm.rank() == context_->comm.size() - 1;
    if (last && context_->inject(Fault::slow_rank)) trainer_->slow_down();
    if (context_->inject(Fault::slow_loader)) trainer_->slow_loader();
    if (context_->inject(Fault::stall)) trainer_->stall();
    continue_training();
    sampler.procedure([this] {
      while (static_cast<std::int64_t>(runs_.size()) < settings_.runs) runs_.push_back(run_once(runs_.size()));
      std::vector<double> seconds;
      for (const QualityRun& run : runs_) seconds.push_back(run.seconds);
      return seconds;
    });
  }

  void verify(Checks& checks) override {
    peak_bytes_ = memory_watch_->peak();
    const Score score = olympic_score(runs_);
    std::vector<std::string> missed;
    for (const QualityRun& run : runs_)
      if (!run.reached) missed.push_back(fmt::format("seed {}: not within {} samples", run.seed, run.samples));
    checks.at_most("runs_that_missed_the_target", score.missed, runs_.size() >= 3 ? 1 : 0, missed);
    if (worst_beyond_bound_)
      checks.at_most("standard_errors_beyond_bound", *worst_beyond_bound_, max_errors_beyond_bound);
    const std::vector<nn::StatePart> state = trainer_->training_step().state();
    const int ranks = context_->comm.size();
    if (ranks > 1 && context_->comm.rank() == ranks - 1 && context_->inject(Fault::wrong_sum))
      trainer_->flip_bit(trainer_->common_weight(state));
    checks.at_most("ranks_with_other_weights", trainer_->ranks_that_differ(state), 0);
    check_unusable(*data_, checks);
    judge(checks);
    context_->outputs.conditions["scoring"] = score.rule;
    fill_record();
  }

  std::vector<Metric> metrics(const Measurement& measured) const override;

 private:
  std::int64_t steps_between() const { return settings_.recipe.quality->evaluate_every / settings_.global_batch(); }
  std::int64_t samples_trained() const { return trainer_->steps() * settings_.global_batch(); }
  std::uint64_t seed_of(std::size_t run) const { return settings_.seed + context_->inputs.seed + run; }

  QualityRun run_once(std::size_t index) {
    const std::uint64_t seed = seed_of(index);
    RunLog log(*context_, files_->log_name(seed));
    double before = 0;  // seconds on the clock in an earlier attempt
    const bool resumed = resume_.has_value();
    if (resumed) {
      log.restore(resume_->value("log", ""));
      before = resume_->value("seconds", 0.0);
      resume_.reset();
    } else {
      log.begin(*context_, settings_, *goal_, seed);
      trainer_->initialise(seed);
      log.run_start();
    }
    const Clock::time_point start = Clock::now();
    if (!resumed) {
      data_ = open_data(settings_);
      damage_image(*data_, seed, *context_);
      trainer_->open(data_, seed);
    }
    QualityRun run{seed, false, 0, 0};
    for (;;) {
      const std::int64_t done = trainer_->steps() % steps_between();
      if (done == 0) log.block_start(samples_trained(), settings_.recipe.quality->evaluate_every);
      for (std::int64_t step = done; step < steps_between(); ++step) {
        train_one();
        if (due() && step + 1 < steps_between()) save(log, before + seconds_since(start));
      }
      log.block_stop(samples_trained());
      const Evaluation evaluation = evaluate(log);
      run.samples = samples_trained();
      // All ranks decide alike, since sums over ranks are equal on all.
      run.reached = goal_->reached(evaluation);
      if (run.reached || run.samples >= settings_.recipe.quality->max_samples) {
        update_worst_bound(evaluation);
        break;
      }
      if (due()) save(log, before + seconds_since(start));
    }
    run.seconds = before + seconds_since(start);
    log.run_stop(run.reached, run.samples);
    return run;
  }

  bool due() const { return settings_.save_every > 0 && trainer_->steps() % settings_.save_every == 0; }

  void train_one() {
    const std::int64_t next = trainer_->steps() + 1;
    const Step step = trainer_->step(learning_rate(settings_.recipe.schedule, next));
    losses_.add(seconds_since(started_), step.result.loss);
    sampler_->waited(step.parts.exposed_communication);
    parts_ += step.parts;
    ++steps_;
  }

  Evaluation evaluate(RunLog& log) {
    const Clock::time_point start = Clock::now();
    log.eval_start(samples_trained());
    const Evaluation evaluation = trainer_->evaluate();
    log.eval_stop(samples_trained(), goal_->value_of(evaluation));
    evaluation_seconds_ += seconds_since(start);
    evaluations_.add(seconds_since(started_), goal_->value_of(evaluation));
    last_ = goal_->value_of(evaluation);
    return evaluation;
  }

  void update_worst_bound(const Evaluation& evaluation) {
    const auto beyond = goal_->errors_beyond_bound(evaluation);
    if (beyond && (!worst_beyond_bound_ || *beyond > *worst_beyond_bound_)) worst_beyond_bound_ = beyond;
  }

  void save(const RunLog& log, double seconds) {
    Json meta = {{"seconds", seconds}, {"log", log.text()}, {"runs", Json::array()}};
    for (const QualityRun& run : runs_)
      meta["runs"].push_back(
          {{"seed", run.seed}, {"reached", run.reached}, {"seconds", run.seconds}, {"samples", run.samples}});
    meta["losses"] = losses_.json();
    meta["evaluations"] = evaluations_.json();
    written_.add(files_->save(*trainer_, std::move(meta)));
  }

  // From the checkpoint of an earlier attempt or of the parameter `from`, if there is one.
  void continue_training() {
    Transfer read;
    auto notes = files_->resume(*trainer_, &read);
    if (notes) {
      read_ = read;
    } else {
      notes = files_->continue_from(*trainer_);
      if (!notes) return;
    }
    const Json& meta = notes->meta;
    for (const Json& run : meta.value("runs", Json::array()))
      runs_.push_back({run.at("seed"), run.at("reached"), run.at("seconds"), run.at("samples")});
    data_ = open_data(settings_);
    trainer_->open(data_, seed_of(runs_.size()), trainer_->steps());
    losses_.restore(meta.at("losses"));
    evaluations_.restore(meta.at("evaluations"));
    resume_ = meta;
    context_->outputs.flags.push_back(
        fmt::format("resumed in run {} of {} from step {}", runs_.size() + 1, settings_.runs, trainer_->steps()));
  }

  void judge(Checks& checks) {
    std::optional<Convergence> reference;
    if (settings_.path == generated_path) reference = find_convergence(settings_.recipe.model);
    const ConvergenceVerdict verdict = judge_convergence(runs_, settings_.global_batch(), reference);
    context_->outputs.labels["convergence"] = fmt::format("{}: {}", word_of(verdict.verdict), verdict.reason);
    if (verdict.verdict == Verdict::not_judged) return;
    // Too fast means a mistake that flatters the result; too slow only harms the result itself.
    checks.that("convergence_not_too_fast", verdict.verdict != Verdict::too_fast, {verdict.reason});
    if (verdict.verdict == Verdict::too_slow)
      context_->outputs.flags.push_back("converges too slowly: " + verdict.reason);
  }

  void fill_record() {
    if (context_->comm.rank() != 0) return;
    context_->outputs.spans = parts_.spans(steps_);
    context_->outputs.spans.emplace_back("evaluation",
                                         evaluation_seconds_ / static_cast<double>(std::max<std::int64_t>(1, steps_)));
    context_->outputs.series["loss"] = losses_.series();
    context_->outputs.series[goal_->is_loss() ? "eval_loss" : "eval_accuracy"] = evaluations_.series();
    Curve samples;
    double at = 0;
    for (const QualityRun& run : runs_) samples.add(at += run.seconds, static_cast<double>(run.samples));
    context_->outputs.series["samples_to_quality"] = samples.series();
  }

  const ModelFamily& family_;
  Params params_;
  Context* context_ = nullptr;
  Clock::time_point started_;
  Settings settings_;
  std::optional<Trainer> trainer_;
  std::optional<CaseFiles> files_;
  std::optional<Goal> goal_;
  Sampler* sampler_ = nullptr;                     // during measure()
  std::shared_ptr<const data::TrainingSet> data_;  // of the current run

  std::vector<QualityRun> runs_;
  std::optional<Json> resume_;  // the checkpoint's state of the interrupted run
  Curve losses_, evaluations_;
  StepParts parts_;
  std::int64_t steps_ = 0;  // in this attempt
  double evaluation_seconds_ = 0;
  double last_ = 0;
  std::optional<double> worst_beyond_bound_;
  std::optional<MemoryWatch> memory_watch_;
  std::optional<std::uint64_t> peak_bytes_;
  Transfer written_;
  std::optional<Transfer> read_;
};

std::vector<Metric> QualityCase::metrics(const Measurement&) const {
  double seconds = 0, samples = 0;
  for (const QualityRun& run : runs_) seconds += run.seconds, samples += static_cast<double>(run.samples);
  const double items = samples * static_cast<double>(settings_.items_per_sample());
  const auto rate = [](double amount, double time) { return time > 0 ? std::optional(amount / time) : std::nullopt; };
  std::vector<Metric> all;
  all.push_back(value_metric("time_to_quality", olympic_score(runs_).seconds, "s"));
  all.push_back(value_metric("samples_to_quality", samples / static_cast<double>(runs_.size()), "1"));
  all.push_back(value_metric("throughput", rate(items, seconds), settings_.item_unit(), Better::higher));
  const bool loss = goal_->is_loss();
  const Better better = loss ? Better::lower : Better::higher;
  all.push_back(value_metric(loss ? "eval_loss" : "eval_accuracy", last_, "1", better));
  all.push_back(value_metric("quality_target", goal_->target(), "1", better));
  if (goal_->bound())
    all.push_back(value_metric(loss ? "loss_floor" : "accuracy_ceiling", goal_->bound(), "1", better));
  all.push_back(
      value_metric("peak_memory", peak_bytes_ ? std::optional(static_cast<double>(*peak_bytes_)) : std::nullopt, "B"));
  all.push_back(value_metric("planned_memory", static_cast<double>(trainer_->memory().total()), "B"));
  if (settings_.save_every > 0) {
    all.push_back(rate_metric("checkpoint_write", written_));
    all.push_back(rate_metric("checkpoint_read", read_.value_or(Transfer())));
  }
  return all;
}

}  // namespace

std::unique_ptr<Case> make_quality_case(const ModelFamily& family, const Params& params) {
  return std::make_unique<QualityCase>(family, params);
}

}  // namespace assay::training
