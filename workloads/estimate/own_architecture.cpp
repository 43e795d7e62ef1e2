#include "workloads/estimate/own_architecture.h"

#include <utility>
#include <vector>

namespace assay::estimate {

architecture::Architecture architecture_of(const transformer::Config& c) {
  using namespace architecture;
  Architecture model;
  model.name = c.name, model.type = c.family;
  model.vocabulary = c.vocabulary, model.positions = c.positions, model.width = c.width;
  model.gated = c.mlp == ops::ActivationKind::silu_gate;
  model.rms = c.norm == ops::NormKind::rms;
  model.tied = c.tied, model.causal = c.causal;
  const auto norm = [&](const char* name) {
    return Weight{.name = name, .part = Part::norm, .out = model.rms ? c.width : 2 * c.width};
  };
  const auto table = [&](const char* name, std::int64_t rows, Split split) {
    if (rows > 0) model.first.push_back({.name = name, .part = Part::embedding, .out = rows * c.width, .split = split});
  };
  table("tokens", c.vocabulary, Split::outputs);
  if (c.position == transformer::Position::learned) table("positions", c.positions, Split::none);
  table("types", c.token_types, Split::none);
  if (c.post_norm) model.first.push_back(norm("norm"));
  Layer layer;
  layer.attention = {
      .heads = c.heads, .kv_heads = c.kv_heads, .key_dim = c.head_dim, .value_dim = c.head_dim, .window = c.window};
  layer.mlp_width = c.mlp_width;
  const std::int64_t queries = c.heads * c.head_dim, keys = 2 * c.kv_heads * c.head_dim;
  layer.weights = {
      {.name = "qkv",
       .part = Part::attention,
       .in = c.width,
       .out = queries + keys,
       .bias = c.bias || c.qkv_bias,
       .split = Split::outputs},
      {.name = "attention.out",
       .part = Part::attention,
       .in = queries,
       .out = c.width,
       .bias = c.bias,
       .split = Split::inputs},
      {.name = "mlp.in",
       .part = Part::mlp,
       .in = c.width,
       .out = (model.gated ? 2 : 1) * c.mlp_width,
       .bias = c.bias,
       .split = Split::outputs},
      {.name = "mlp.out", .part = Part::mlp, .in = c.mlp_width, .out = c.width, .bias = c.bias, .split = Split::inputs},
      norm("norm_0"),
      norm("norm_1")};
  model.kinds = {layer};
  model.order.assign(static_cast<std::size_t>(c.layers), 0);
  if (!c.post_norm) model.last.push_back(norm("norm"));
  if (c.head_transform) {
    model.last.push_back({.name = "transform", .part = Part::head, .in = c.width, .out = c.width, .bias = true});
    model.last.push_back(norm("transform.norm"));
  }
  const bool bias = c.head_transform;
  if (!c.tied)
    model.last.push_back({.name = "head",
                          .part = Part::head,
                          .in = c.width,
                          .out = c.vocabulary,
                          .bias = bias,
                          .split = Split::outputs});
  else if (bias)
    model.last.push_back({.name = "head.bias", .part = Part::head, .out = c.vocabulary});
  return model;
}

architecture::Architecture with_separate_projections(architecture::Architecture model) {
  using architecture::Weight;
  for (architecture::Layer& layer : model.kinds) {
    const std::int64_t keys = layer.attention.kv_heads * layer.attention.key_dim;
    std::vector<Weight> apart;
    const auto add = [&](Weight part, const char* name, std::int64_t out) {
      part.name = name, part.out = out;
      apart.push_back(part);
    };
    for (const Weight& weight : layer.weights) {
      if (weight.name == "qkv") {
        add(weight, "q", weight.out - 2 * keys), add(weight, "k", keys), add(weight, "v", keys);
      } else if (weight.name == "mlp.in" && model.gated && weight.out == 2 * layer.mlp_width) {
        add(weight, "gate", layer.mlp_width), add(weight, "up", layer.mlp_width);
      } else {
        apart.push_back(weight);
      }
    }
    layer.weights = std::move(apart);
  }
  return model;
}

}  // namespace assay::estimate
