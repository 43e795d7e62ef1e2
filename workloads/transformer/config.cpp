#include "workloads/transformer/config.h"

#include "harness/json/json.h"
#include "workloads/transformer/config_reader.h"
#include "workloads/transformer/hugging_face.h"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace assay::transformer {

namespace {

void read_rotary(const Cursor& cursor, Config& config) {
  const auto member = cursor.find("rotary");
  if (!member || !member->object()) return;
  if (config.position != Position::rotary) member->error("allowed only if position is \"rotary\"");
  static const std::vector<std::string> names = {"base", "scaling"};
  member->only(names);
  ConfigReader(*member).real("base", config.rotary_base, 1.0, 1e12);
  const auto scaling = member->find("scaling");
  if (!scaling || !scaling->object()) return;
  static const std::vector<std::string> scaling_names = {"factor", "low_frequency_factor", "high_frequency_factor",
                                                         "original_positions"};
  scaling->only(scaling_names);
  RotaryScaling values;
  const ConfigReader reader(*scaling);
  reader.real("factor", values.factor, 1.0, 1e6);
  reader.real("low_frequency_factor", values.low_frequency_factor, 1e-6, 1e6);
  reader.real("high_frequency_factor", values.high_frequency_factor, 1e-6, 1e6);
  reader.real("original_positions", values.original_positions, 1.0, 1e9);
  if (values.high_frequency_factor <= values.low_frequency_factor)
    scaling->error("high_frequency_factor must be larger than low_frequency_factor");
  config.rotary_scaling = values;
}

// Messages name the members of a file like this.
struct Names {
  const char* heads = "heads";
  const char* kv_heads = "kv_heads";
  const char* token_types = "token_types";
};
Names names_in(const Json& json) {
  if (!is_hugging_face(json)) return {};
  return {json.contains("n_head") ? "n_head" : "num_attention_heads", "num_key_value_heads", "type_vocab_size"};
}

// The largest model that sizes are counted for; trillions of parameters are in reach, quadrillions are not.
constexpr double max_parameters = 1e15;

double approximate_parameters(const Config& c) {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double width = real(c.width), heads = real(c.heads + c.kv_heads) * 2 * real(c.head_dim);
  return real(c.layers) * width * (heads + 3 * real(c.mlp_width)) + width * real(2 * c.vocabulary + c.positions);
}

void check_shapes(const Cursor& cursor, Config& config) {
  const Names names = names_in(cursor.json());
  const auto place = [&](const char* name) { return cursor.find(name).value_or(cursor); };
  if (config.head_dim == 0) {
    if (config.width % config.heads != 0) {
      place(names.heads).error(fmt::format("{} heads do not divide the width {}", config.heads, config.width));
      return;
    }
    config.head_dim = config.width / config.heads;
  }
  if (config.heads % config.kv_heads != 0)
    place(names.kv_heads)
        .error(fmt::format("{} key and value heads do not divide {} heads", config.kv_heads, config.heads));
  if (config.position == Position::rotary && config.head_dim % 2 != 0)
    place(cursor.find("head_dim") ? "head_dim" : names.heads)
        .error(
            fmt::format("rotary positions rotate pairs, but a head has {} elements, an odd number", config.head_dim));
  if (config.token_types == 1) place(names.token_types).error("one token type carries no information: leave it out");
  if (config.padding_mask && config.causal) place("padding_mask").error("allowed only if causal is false");
  if (config.head_transform && config.mlp == ops::ActivationKind::silu_gate)
    place("head_transform").error("needs mlp \"gelu_tanh\" or \"gelu_erf\"");
  if (const double parameters = approximate_parameters(config); parameters > max_parameters)
    cursor.error(
        fmt::format("about {:.1g} parameters are beyond the {:.0g} that can be planned", parameters, max_parameters));
}

void read_own(const Cursor& cursor, Config& config) {
  cursor.schema(1);
  static const std::vector<std::string> names = {
      "schema",          "family",       "description", "source",         "vocabulary",
      "positions",       "layers",       "width",       "heads",          "kv_heads",
      "head_dim",        "mlp_width",    "norm",        "norm_epsilon",   "post_norm",
      "position",        "rotary",       "mlp",         "bias",           "tied",
      "causal",          "padding_mask", "token_types", "head_transform", "deviation",
      "scaled_residual", "parameters",   "qkv_bias"};
  cursor.only(names);
  const ConfigReader reader(cursor);
  static constexpr std::array<std::pair<const char*, bool>, 2> families = {{{"transformer", false}, {"llama", true}}};
  bool llama = false;
  reader.choice("family", llama, families);
  config.family = llama ? "llama" : "transformer";
  reader.size("vocabulary", config.vocabulary, 2);
  reader.size("positions", config.positions);
  reader.size("layers", config.layers, 1, max_layers);
  reader.size("width", config.width);
  reader.size("heads", config.heads);
  reader.size_or("kv_heads", config.kv_heads, config.heads);
  reader.size_or("head_dim", config.head_dim, 0);
  reader.size("mlp_width", config.mlp_width);
  reader.size_or("token_types", config.token_types, 0, 0);
  using Norms = std::array<std::pair<const char*, ops::NormKind>, 2>;
  reader.choice("norm", config.norm, Norms{{{"layer", ops::NormKind::layer}, {"rms", ops::NormKind::rms}}});
  using Positions = std::array<std::pair<const char*, Position>, 3>;
  reader.choice("position", config.position,
                Positions{{{"learned", Position::learned}, {"rotary", Position::rotary}, {"none", Position::none}}});
  using Kinds = std::array<std::pair<const char*, ops::ActivationKind>, 3>;
  reader.choice("mlp", config.mlp,
                Kinds{{{"gelu_tanh", ops::ActivationKind::gelu_tanh},
                       {"gelu_erf", ops::ActivationKind::gelu_erf},
                       {"silu_gate", ops::ActivationKind::silu_gate}}});
  reader.real("norm_epsilon", config.norm_epsilon, 1e-12, 1.0);
  reader.real("deviation", config.deviation, 1e-6, 10.0);
  reader.flag("post_norm", config.post_norm);
  reader.flag("bias", config.bias);
  reader.flag("qkv_bias", config.qkv_bias);
  reader.flag("tied", config.tied);
  reader.flag("causal", config.causal);
  reader.flag("padding_mask", config.padding_mask);
  reader.flag("head_transform", config.head_transform);
  reader.flag("scaled_residual", config.scaled_residual);
  read_rotary(cursor, config);
}

}  // namespace

Config read_config(const Json& json, const std::string& source, const std::string& name) {
  Problems problems(source);
  const Cursor cursor(json, problems);
  Config config;
  config.name = name;
  if (!cursor.object()) problems.raise();
  if (is_hugging_face(json))
    read_hugging_face(cursor, config);
  else
    read_own(cursor, config);
  if (problems.empty()) check_shapes(cursor, config);
  problems.raise();
  return config;
}

}  // namespace assay::transformer
