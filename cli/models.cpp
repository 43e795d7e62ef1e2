#include "cli/models.h"

#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "workloads/nn/step_plan.h"
#include "workloads/resnet/resnet.h"
#include "workloads/transformer/transformer.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::cli {

namespace {

std::unique_ptr<nn::Model> load(const ConfigFile& file) {
  const std::string source = file.path.string();
  const Json json = read_json(file.path);
  if (json.is_object() && json.contains("family") && json["family"] == "resnet")
    return resnet::make_resnet(resnet::read_config(json, source, file.name));
  return transformer::make_transformer(transformer::read_config(json, source, file.name));
}

nn::StepOptions options_of(const nn::Model& model, const PlannedStep& step) {
  nn::StepOptions options;
  options.precision = nn::precision_from(step.precision);
  const std::vector<std::string> valid = {"none", "full"};
  if (std::find(valid.begin(), valid.end(), step.checkpointing) == valid.end())
    throw UsageError(
        fmt::format("unknown checkpointing \"{}\"{}", step.checkpointing, suggestion(step.checkpointing, valid)));
  options.checkpointing = step.checkpointing == "full" ? nn::Checkpointing::full : nn::Checkpointing::none;
  options.accumulate = step.accumulate;
  options.optimizer = model.images() ? ops::OptimizerKind::sgd : ops::OptimizerKind::adamw;
  options.batch.samples = step.micro_batch.value_or(model.images() ? 16 : 4);
  if (!model.images()) {
    const std::int64_t positions = model.input().positions;
    const std::int64_t usual = positions > 0 ? std::min<std::int64_t>(512, positions) : 512;
    options.batch.seq = step.seq.value_or(usual);
  }
  return options;
}

Json planned_for(const nn::Model& model, const nn::StepOptions& options, const PlannedStep& step) {
  Json json = {{"micro_batch", options.batch.samples}};
  if (!model.images()) json["seq"] = options.batch.seq;
  json["accumulate"] = options.accumulate;
  json["precision"] = step.precision;
  json["checkpointing"] = step.checkpointing;
  json["optimizer"] = model.images() ? "sgd" : "adamw";
  return json;
}

Json memory_json(const nn::MemoryPlan& plan) {
  return {{"weights", plan.weights},     {"gradients", plan.gradients},
          {"optimizer", plan.optimizer}, {"activations", plan.activations},
          {"workspace", plan.workspace}, {"total", plan.total()},
          {"text", plan.text()}};
}

// 124,439,808
std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

}  // namespace

Json model_json(const ConfigFile& file, const PlannedStep& step) {
  const std::unique_ptr<nn::Model> model = load(file);
  Json json = {{"name", file.name}};
  if (!file.description.empty()) json["description"] = file.description;
  json["path"] = file.path.string();
  std::int64_t parameters = 0;
  for (const nn::ParameterSpec& spec : model->parameters()) parameters += spec.count();
  json["parameters"] = parameters;
  const nn::StepOptions options = options_of(*model, step);
  // A sequence too long for this model may fit others.
  const std::int64_t positions = model->input().positions;
  if (!model->images() && positions > 0 && options.batch.seq > positions) {
    json["flops"] = nullptr;
    json["memory"] = nullptr;
    json["reason"] = fmt::format("seq {} is beyond the model's {} positions", options.batch.seq, positions);
    return json;
  }
  const nn::ModelCost cost = model->cost(options.batch);
  const double items = model->images() ? 1.0 : static_cast<double>(options.batch.seq);
  json["flops"] = {{"per", model->images() ? "image" : "token"},
                   {"forward", cost.forward / items},
                   {"training", cost.training / items},
                   {"training_full_attention", cost.training_full_attention / items},
                   {"formula", cost.formula}};
  json["planned_for"] = planned_for(*model, options, step);
  json["memory"] = memory_json(nn::plan_memory(*model, options));
  return json;
}

std::string model_text(const Json& model) {
  const auto text = [&](const char* name) {
    return model.contains(name) ? one_line(model[name].get<std::string>()) : std::string();
  };
  std::string out = fmt::format("  {:<12} {}\n", text("name"), text("description"));
  if (!model.contains("parameters")) return out + fmt::format("    not a model: {}\n", text("reason"));
  out += fmt::format("    parameters   {}\n", grouped(model["parameters"].get<std::int64_t>()));
  if (model["memory"].is_null()) return out + fmt::format("    no plan: {}\n", text("reason"));
  const Json& flops = model["flops"];
  const std::string per = flops["per"].get<std::string>();
  const auto gflop = [&](const char* name) { return flops[name].get<double>() / 1e9; };
  out += fmt::format("    FLOPs        {:.4g} GFLOP {} {} forward, {:.4g} in training", gflop("forward"),
                     per == "image" ? "an" : "a", per, gflop("training"));
  if (gflop("training_full_attention") != gflop("training"))
    out += fmt::format(" ({:.4g} with the whole attention square)", gflop("training_full_attention"));
  out += fmt::format("\n                 {}\n", flops["formula"].get<std::string>());
  const Json& step = model["planned_for"];
  std::string shape = fmt::format("micro_batch {}", step["micro_batch"].get<std::int64_t>());
  if (step.contains("seq")) shape += fmt::format(", seq {}", step["seq"].get<std::int64_t>());
  if (step["accumulate"].get<std::int64_t>() > 1)
    shape += fmt::format(", accumulate {}", step["accumulate"].get<std::int64_t>());
  out += fmt::format(
      "    memory       {}\n                 ({}, {}, checkpointing {}, {}; without the device's scratch)\n",
      model["memory"]["text"].get<std::string>(), shape, step["precision"].get<std::string>(),
      step["checkpointing"].get<std::string>(), step["optimizer"].get<std::string>());
  return out;
}

}  // namespace assay::cli
