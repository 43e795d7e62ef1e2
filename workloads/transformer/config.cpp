#include "workloads/transformer/config.h"

#include "harness/json/json.h"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace assay::transformer {

namespace {

constexpr std::int64_t max_size = std::int64_t{1} << 24;

// Reads members of the file into variables.
class Reader {
 public:
  explicit Reader(const Cursor& cursor) : cursor_(cursor) {}

  void size(const char* name, std::int64_t& value, std::int64_t min = 1) const {
    if (const auto member = cursor_.need(name))
      if (const auto read = member->integer(min, max_size)) value = *read;
  }
  void size_or(const char* name, std::int64_t& value, std::int64_t fallback, std::int64_t min = 1) const {
    value = fallback;
    if (const auto member = cursor_.find(name))
      if (const auto read = member->integer(min, max_size)) value = *read;
  }
  void flag(const char* name, bool& value) const {
    if (const auto member = cursor_.find(name))
      if (const auto read = member->flag()) value = *read;
  }
  void real(const char* name, double& value, double min, double max) const {
    if (const auto member = cursor_.find(name))
      if (const auto read = member->number(min, max)) value = *read;
  }
  template <typename Enum, std::size_t n>
  void choice(const char* name, Enum& value, const std::array<std::pair<const char*, Enum>, n>& choices) const {
    const auto member = cursor_.need(name);
    if (!member) return;
    std::vector<std::string> names;
    for (const auto& [text, meaning] : choices) names.emplace_back(text);
    const auto read = member->choice(names);
    if (!read) return;
    for (const auto& [text, meaning] : choices)
      if (*read == text) value = meaning;
  }

 private:
  const Cursor& cursor_;
};

void read_rotary(const Cursor& cursor, Config& config) {
  const auto member = cursor.find("rotary");
  if (!member || !member->object()) return;
  if (config.position != Position::rotary) member->error("allowed only if position is \"rotary\"");
  static const std::vector<std::string> names = {"base", "scaling"};
  member->only(names);
  Reader(*member).real("base", config.rotary_base, 1.0, 1e12);
  const auto scaling = member->find("scaling");
  if (!scaling || !scaling->object()) return;
  static const std::vector<std::string> scaling_names = {"factor", "low_frequency_factor", "high_frequency_factor",
                                                         "original_positions"};
  scaling->only(scaling_names);
  RotaryScaling values;
  const Reader reader(*scaling);
  reader.real("factor", values.factor, 1.0, 1e6);
  reader.real("low_frequency_factor", values.low_frequency_factor, 1e-6, 1e6);
  reader.real("high_frequency_factor", values.high_frequency_factor, 1e-6, 1e6);
  reader.real("original_positions", values.original_positions, 1.0, 1e9);
  if (values.high_frequency_factor <= values.low_frequency_factor)
    scaling->error("high_frequency_factor must be larger than low_frequency_factor");
  config.rotary_scaling = values;
}

void check_shapes(const Cursor& cursor, Config& config) {
  const auto place = [&](const char* name) { return cursor.find(name).value_or(cursor); };
  if (!cursor.find("head_dim")) {
    if (config.width % config.heads != 0) {
      place("heads").error(fmt::format("{} heads do not divide the width {}", config.heads, config.width));
      return;
    }
    config.head_dim = config.width / config.heads;
  }
  if (config.heads % config.kv_heads != 0)
    place("kv_heads")
        .error(fmt::format("{} key and value heads do not divide {} heads", config.kv_heads, config.heads));
  if (config.position == Position::rotary && config.head_dim % 2 != 0)
    place(cursor.find("head_dim") ? "head_dim" : "heads")
        .error(
            fmt::format("rotary positions rotate pairs, but a head has {} elements, an odd number", config.head_dim));
  if (config.token_types == 1) place("token_types").error("one token type carries no information: leave it out");
  if (config.padding_mask && config.causal) place("padding_mask").error("allowed only if causal is false");
  if (config.head_transform && config.mlp == ops::ActivationKind::silu_gate)
    place("head_transform").error("needs mlp \"gelu_tanh\" or \"gelu_erf\"");
}

}  // namespace

Config read_config(const Json& json, const std::string& source, const std::string& name) {
  Problems problems(source);
  const Cursor cursor(json, problems);
  Config config;
  config.name = name;
  if (!cursor.object()) problems.raise();
  cursor.schema(1);
  static const std::vector<std::string> names = {
      "schema",          "family",       "description", "source",         "vocabulary",
      "positions",       "layers",       "width",       "heads",          "kv_heads",
      "head_dim",        "mlp_width",    "norm",        "norm_epsilon",   "post_norm",
      "position",        "rotary",       "mlp",         "bias",           "tied",
      "causal",          "padding_mask", "token_types", "head_transform", "deviation",
      "scaled_residual", "parameters"};
  cursor.only(names);
  const Reader reader(cursor);
  static constexpr std::array<std::pair<const char*, bool>, 2> families = {{{"transformer", false}, {"llama", true}}};
  bool llama = false;
  reader.choice("family", llama, families);
  config.family = llama ? "llama" : "transformer";
  reader.size("vocabulary", config.vocabulary, 2);
  reader.size("positions", config.positions);
  reader.size("layers", config.layers);
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
  reader.flag("tied", config.tied);
  reader.flag("causal", config.causal);
  reader.flag("padding_mask", config.padding_mask);
  reader.flag("head_transform", config.head_transform);
  reader.flag("scaled_residual", config.scaled_residual);
  read_rotary(cursor, config);
  if (problems.empty()) check_shapes(cursor, config);
  problems.raise();
  return config;
}

}  // namespace assay::transformer
