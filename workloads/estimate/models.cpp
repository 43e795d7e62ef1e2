#include "workloads/estimate/models.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/members.h"
#include "workloads/resnet/family.h"
#include "workloads/resnet/resnet.h"
#include "workloads/training/family.h"
#include "workloads/transformer/family.h"
#include "workloads/transformer/transformer.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::estimate {

std::int64_t LoadedModel::parameters() const {
  std::int64_t count = 0;
  for (const nn::ParameterSpec& spec : model->parameters()) count += spec.count();
  return count;
}

LoadedModel load_model(const std::filesystem::path& file) {
  const std::string source = file.string(), name = training::model_name(file);
  const Json json = read_json(file);
  if (json.is_object() && json.contains("family") && json["family"] == resnet_models.name)
    return {&resnet_models, resnet::make_resnet(resnet::read_config(json, source, name)), std::nullopt};
  const transformer::Config config = transformer::read_config(json, source, name);
  return {config.family == llama_models.name ? &llama_models : &transformer_models,
          transformer::make_transformer(config), config};
}

Json model_json(const ConfigFile& file) {
  const LoadedModel loaded = load_model(file.path);
  const nn::Model& model = *loaded.model;
  Json json = json_of(file);
  json["parameters"] = loaded.parameters();
  const nn::InputSpec input = model.input();
  constexpr std::int64_t usual_seq = 512;
  const std::int64_t limit = input.max_seq();
  const std::int64_t seq = model.images() ? 0 : limit > 0 ? std::min(usual_seq, limit) : usual_seq;
  const nn::ModelCost cost = model.cost({1, seq});
  const double items = model.images() ? 1.0 : static_cast<double>(seq);
  json["flops"] = {{"per", model.images() ? "image" : "token"},
                   {"forward", cost.forward / items},
                   {"training", cost.training / items},
                   {"training_full_attention", cost.training_full_attention / items},
                   {"formula", cost.formula}};
  if (!model.images()) json["flops"]["seq"] = seq;
  return json;
}

std::string model_text(const Json& model) {
  const auto text = [&](const char* name) {
    return model.contains(name) ? one_line(model[name].get<std::string>()) : std::string();
  };
  std::string out = fmt::format("  {:<12} {}\n", text("name"), text("description"));
  if (!model.contains("parameters")) return out + fmt::format("    not a model: {}\n", text("reason"));
  out += fmt::format("    parameters   {}\n", format_number(model["parameters"].get<double>(), 0));
  const Json& flops = model["flops"];
  const std::string per = flops["per"].get<std::string>();
  const auto gflop = [&](const char* name) { return flops[name].get<double>() / 1e9; };
  out += fmt::format("    FLOPs        {:.4g} GFLOP {} {} forward, {:.4g} in training", gflop("forward"),
                     per == "image" ? "an" : "a", per, gflop("training"));
  if (gflop("training_full_attention") != gflop("training"))
    out += fmt::format(" ({:.4g} with the whole attention square)", gflop("training_full_attention"));
  out += fmt::format("\n                 {}\n", flops["formula"].get<std::string>());
  return out;
}

}  // namespace assay::estimate
