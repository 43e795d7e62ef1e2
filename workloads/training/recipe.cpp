// Reads recipes strictly.
#include "workloads/training/recipe.h"

#include "harness/core/configs.h"
#include "harness/core/error.h"
#include "harness/json/json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace assay::training {

namespace fs = std::filesystem;

namespace {

constexpr int recipe_schema = 1;
constexpr double most = std::numeric_limits<double>::max();
constexpr std::int64_t max_count = std::int64_t{1} << 40;

using Names = std::vector<std::string>;

// Reads a member into `value` if the object has it.
void number(const Cursor& at, const char* name, double& value, double minimum, double maximum) {
  if (const auto member = at.find(name))
    if (const auto read = member->number(minimum, maximum)) value = *read;
}

void integer(const Cursor& at, const char* name, std::int64_t& value, std::int64_t minimum = 1) {
  if (const auto member = at.find(name))
    if (const auto read = member->integer(minimum, max_count)) value = *read;
}

std::optional<std::string> need_choice(const Cursor& at, const char* name, const Names& allowed) {
  const auto member = at.need(name);
  return member ? member->choice(allowed) : std::nullopt;
}

// A member that the chosen kind does not use is an error.
void read_optimizer(const Cursor& at, nn::StepOptions& options) {
  static const Names kinds = {"adamw", "sgd"};
  if (!at.object()) return;
  const auto kind = need_choice(at, "name", kinds);
  if (!kind) return;
  if (*kind == "adamw") {
    at.only(Names{"name", "beta1", "beta2", "epsilon", "weight_decay", "clip"});
    options.optimizer = ops::OptimizerKind::adamw;
    number(at, "beta1", options.beta1, 0, 0.999999);
    number(at, "beta2", options.beta2, 0, 0.9999999);
    number(at, "epsilon", options.epsilon, 1e-30, 1);
  } else {
    at.only(Names{"name", "momentum", "weight_decay", "clip"});
    options.optimizer = ops::OptimizerKind::sgd;
    number(at, "momentum", options.momentum, 0, 0.999999);
  }
  number(at, "weight_decay", options.weight_decay, 0, 100);
  number(at, "clip", options.max_norm, 0, most);
}

void read_milestones(const Cursor& at, Schedule& schedule) {
  for (const Cursor& each : at.elements())
    if (const auto step = each.integer(1, max_count)) {
      if (!schedule.milestones.empty() && *step <= schedule.milestones.back()) each.error("milestones must increase");
      schedule.milestones.push_back(*step);
    }
}

void read_schedule(const Cursor& at, Schedule& schedule) {
  static const Names kinds = {"constant", "cosine", "polynomial", "step"};
  if (!at.object()) return;
  const auto kind = need_choice(at, "decay", kinds);
  if (!kind) return;
  Names members = {"decay", "base", "warmup_steps"};
  if (*kind == "cosine" || *kind == "polynomial") members.insert(members.end(), {"total_steps", "end_factor"});
  if (*kind == "polynomial") members.emplace_back("power");
  if (*kind == "step") members.insert(members.end(), {"milestones", "factor"});
  at.only(members);
  schedule.decay = static_cast<Decay>(std::ranges::find(kinds, *kind) - kinds.begin());
  if (const auto base = at.need("base"))
    if (const auto read = base->number(0, 1e6)) {
      schedule.base = *read;
      if (*read == 0) base->error("must be above 0");
    }
  integer(at, "warmup_steps", schedule.warmup_steps, 0);
  if (schedule.decay == Decay::cosine || schedule.decay == Decay::polynomial) {
    if (const auto total = at.need("total_steps")) {
      integer(at, "total_steps", schedule.total_steps);
      if (schedule.total_steps > 0 && schedule.total_steps <= schedule.warmup_steps)
        total->error("must be greater than warmup_steps");
    }
    number(at, "end_factor", schedule.end_factor, 0, 1);
    number(at, "power", schedule.power, 0.01, 100);
  }
  if (schedule.decay == Decay::step) {
    if (const auto milestones = at.need("milestones")) read_milestones(*milestones, schedule);
    number(at, "factor", schedule.factor, 1e-9, 1);
  }
}

void read_batch(const Cursor& at, Recipe& recipe) {
  if (!at.object()) return;
  at.only(Names{"micro_batch", "accumulate", "seq"});
  if (at.need("micro_batch")) integer(at, "micro_batch", recipe.micro_batch);
  integer(at, "accumulate", recipe.accumulate);
  integer(at, "seq", recipe.seq);
}

void read_data(const Cursor& at, GeneratedData& data) {
  if (!at.object()) return;
  at.only(Names{"chains", "shortest", "label_noise"});
  if (const auto chains = at.find("chains")) data.chains = static_cast<int>(chains->integer(1, 1024).value_or(1));
  integer(at, "shortest", data.shortest, 0);
  if (const auto noise = at.find("label_noise"))
    data.label_noise = static_cast<int>(std::lround(1000 * noise->number(0, 0.99).value_or(0)));
}

void read_target(const Cursor& at, Target& target) {
  if (!at.object()) return;
  const Names members = {"loss_above_floor", "accuracy_of_ceiling", "value"};
  at.only(members);
  number(at, "loss_above_floor", target.loss_above_floor, 0, 10);
  number(at, "accuracy_of_ceiling", target.accuracy_of_ceiling, 0, 1);
  if (const auto value = at.find("value")) target.value = value->number(-most, most);
  if (at.json().size() != 1) at.error("needs one of loss_above_floor, accuracy_of_ceiling and value");
}

void read_quality(const Cursor& at, Recipe& recipe) {
  Recipe::Quality quality;
  if (!at.object()) return;
  at.only(Names{"target", "evaluate_every", "evaluation_samples", "max_samples", "most_samples"});
  // Also reads the old name.
  const char* max_samples = at.find("most_samples") && !at.find("max_samples") ? "most_samples" : "max_samples";
  if (const auto target = at.need("target")) read_target(*target, quality.target);
  for (const auto& [name, value] :
       {std::pair{"evaluate_every", &quality.evaluate_every},
        std::pair{"evaluation_samples", &quality.evaluation_samples}, std::pair{max_samples, &quality.max_samples}})
    if (at.need(name)) integer(at, name, *value);
  if (const auto every = at.find("evaluate_every"); every && quality.evaluate_every % recipe.global_batch() != 0)
    every->error(fmt::format("must be a multiple of the global batch, {}", recipe.global_batch()));
  if (const auto samples = at.find("evaluation_samples");
      samples && quality.evaluation_samples % recipe.micro_batch != 0)
    samples->error(fmt::format("must be a multiple of the micro-batch, {}", recipe.micro_batch));
  recipe.quality = quality;
}

}  // namespace

Recipe read_recipe(const fs::path& file) {
  const auto read = [&](const Cursor& root) {
    Recipe recipe;
    recipe.model = file.stem().string();
    recipe.source = file.string();
    if (const auto description = root.find("description")) description->text();
    if (const auto at = root.need("optimizer")) read_optimizer(*at, recipe.options);
    if (const auto at = root.need("schedule")) read_schedule(*at, recipe.schedule);
    number(root, "label_smoothing", recipe.options.smoothing, 0, 0.99);
    if (const auto at = root.need("batch")) read_batch(*at, recipe);
    if (const auto at = root.find("data")) read_data(*at, recipe.data);
    if (const auto at = root.find("quality")) read_quality(*at, recipe);
    return recipe;
  };
  return read_strictly(
      file, recipe_schema,
      {"schema", "description", "optimizer", "schedule", "label_smoothing", "batch", "data", "quality"}, read);
}

Recipe find_recipe(const std::string& name_or_file, const std::string& family) {
  const std::string model = is_config_path(name_or_file) ? fs::path(name_or_file).stem().string() : name_or_file;
  const fs::path folder = configs_dir() / "recipes";
  std::error_code none;
  for (const std::string& name : {model, family})
    if (const fs::path file = folder / (name + ".json"); fs::exists(file, none)) return read_recipe(file);
  throw UsageError(
      fmt::format("no recipe for {} in {}: neither {}.json nor {}.json", model, folder.string(), model, family));
}

double learning_rate(const Schedule& schedule, std::int64_t step) {
  const double base = schedule.base;
  if (step <= schedule.warmup_steps)
    return base * static_cast<double>(step) / static_cast<double>(schedule.warmup_steps);
  const auto whole = static_cast<double>(std::max<std::int64_t>(1, schedule.total_steps - schedule.warmup_steps));
  const double progress = std::min(1.0, static_cast<double>(step - schedule.warmup_steps) / whole);
  const double end = schedule.end_factor;
  switch (schedule.decay) {
    case Decay::constant: return base;
    case Decay::cosine: return base * (end + (1 - end) * 0.5 * (1 + std::cos(std::numbers::pi * progress)));
    case Decay::polynomial: return base * (end + (1 - end) * std::pow(1 - progress, schedule.power));
    case Decay::step: break;
  }
  double rate = base;
  for (const std::int64_t milestone : schedule.milestones)
    if (step > milestone) rate *= schedule.factor;
  return rate;
}

double timing_rate(const Schedule& schedule, std::int64_t step) {
  return learning_rate({.base = schedule.base, .warmup_steps = 10}, step);
}

}  // namespace assay::training
