#include "workloads/training/run_log.h"

namespace assay::training {

namespace {

Json at(std::int64_t samples) { return {{"samples_count", samples}}; }

}  // namespace

RunLog::RunLog(const Context& context, const std::string& name)
    : write_(context.comm.rank() == 0 && context.services.write_file
                 ? [write = context.services.write_file, name](std::string_view text,
                                                               bool truncate) { write(name, text, truncate); }
                 : std::function<void(std::string_view, bool)>()),
      log_([this](std::string_view text, bool truncate) {
        text_ += text;
        if (write_) write_(text, truncate);
      }) {}

void RunLog::begin(const Context& context, const Settings& settings, const Goal& goal, std::uint64_t seed) {
  const Recipe& recipe = settings.recipe;
  const nn::StepOptions& options = recipe.options;
  // The format requires these; no one submits anything, and these are not MLPerf results.
  log_.point("submission_benchmark", settings.model->name());
  log_.point("submission_org", "none");
  log_.point("submission_division", "open");
  log_.point("submission_status", "research");
  log_.point("submission_platform", context.device.info().name);
  log_.point("cache_clear", true);
  log_.start("init_start");
  log_.point("seed", seed);
  log_.point("global_batch_size", settings.global_batch());
  log_.point("gradient_accumulation_steps", settings.accumulate);
  log_.point("train_samples", recipe.quality->max_samples);
  log_.point("eval_samples", recipe.quality->evaluation_samples);
  log_.point("opt_name", word_of(options.optimizer));
  log_.point("opt_base_learning_rate", recipe.schedule.base);
  log_.point("opt_learning_rate_warmup_steps", recipe.schedule.warmup_steps);
  log_.point("opt_weight_decay", options.weight_decay);
  if (settings.seq > 0) log_.point("max_sequence_length", settings.seq);
  log_.point("quality_target", goal.target(),
             {{"metric", goal.is_loss() ? "loss" : "accuracy"}, {"text", goal.text()}});
}

void RunLog::run_start() {
  log_.stop("init_stop");
  log_.start("run_start");
}

void RunLog::block_start(std::int64_t samples, std::int64_t count) {
  Json place = at(samples);
  place["block_samples"] = count;
  log_.start("block_start", place);
}

void RunLog::block_stop(std::int64_t samples) { log_.stop("block_stop", at(samples)); }

void RunLog::eval_start(std::int64_t samples) { log_.start("eval_start", at(samples)); }

void RunLog::eval_stop(std::int64_t samples, double value) {
  log_.point("eval_accuracy", value, at(samples));
  log_.stop("eval_stop", at(samples));
}

void RunLog::run_stop(bool reached, std::int64_t samples) {
  Json place = at(samples);
  place["status"] = reached ? "success" : "aborted";
  log_.stop("run_stop", place);
}

void RunLog::restore(const std::string& text) {
  text_ = text;
  if (write_) write_(text, true);
  log_.continue_after(text);
}

}  // namespace assay::training
