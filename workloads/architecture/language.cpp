// Dense language models of config.json.
#include "workloads/architecture/readers.h"

#include <fmt/format.h>

namespace assay::architecture {

namespace {

bool is_gemma(const Architecture& model) { return model.type.starts_with("gemma"); }

// Where transformers' own classes have a number, it suits one model only: these files leave out what equals it.
std::int64_t default_head_dim(const Architecture& model) {
  return is_gemma(model) ? 256 : model.type == "qwen3" || model.type == "qwen3_moe" ? 128 : 0;
}

// Layers of sliding attention: by name, by a pattern of every n-th full one, or in the older form all of them.
void read_windows(Members& members, Architecture& model) {
  const bool gemma3 = model.type == "gemma3_text", gemma2 = model.type == "gemma2", gpt_oss = model.type == "gpt_oss";
  const bool qwen = model.type.starts_with("qwen");
  const std::int64_t first_sliding = qwen ? members.size_or("max_window_layers", 28, 0) : 0;
  const std::int64_t fallback = gemma3 || gemma2 ? 4096 : gpt_oss ? 128 : 0;
  std::int64_t window = members.size_or("sliding_window", fallback, 0);
  if (qwen && !members.flag_or("use_sliding_window", false)) window = 0;
  const std::int64_t pattern = gemma2 || gpt_oss ? 2 : gemma3 ? members.size_or("sliding_window_pattern", 6) : 0;
  const auto types = members.texts("layer_types");
  if (window <= 0 || window >= model.positions) return;
  Layer sliding = model.kinds.front();
  sliding.attention.window = window;
  model.kinds.push_back(sliding);
  for (std::size_t i = 0; i < model.order.size(); ++i) {
    const bool by_pattern = pattern > 0 && (i + 1) % static_cast<std::size_t>(pattern) != 0;
    const bool slides = types && i < types->size() ? types->at(i) == "sliding_attention"
                        : pattern > 0              ? by_pattern
                                                   : static_cast<std::int64_t>(i) >= first_sliding;
    if (slides) model.order[i] = 1;
  }
}

void add_mlp(Members& members, const Architecture& model, Layer& layer) {
  const bool bias = members.flag_or("mlp_bias", false), fused = model.type == "phi3";
  const std::int64_t width = members.size("intermediate_size");
  layer.mlp_width = width;
  if (fused) {
    layer.weights.push_back(matrix("gate_up_proj", Part::mlp, Split::outputs, model.width, 2 * width));
  } else {
    layer.weights.push_back(matrix("gate_proj", Part::mlp, Split::outputs, model.width, width, bias));
    layer.weights.push_back(matrix("up_proj", Part::mlp, Split::outputs, model.width, width, bias));
  }
  layer.weights.push_back(matrix("down_proj", Part::mlp, Split::inputs, width, model.width, bias));
}

}  // namespace

Weight vector_of(std::string name, std::int64_t size, Part part) {
  return {.name = std::move(name), .part = part, .in = 1, .out = size};
}

Weight matrix(std::string name, Part part, Split split, std::int64_t in, std::int64_t out, bool bias) {
  return {.name = std::move(name), .part = part, .in = in, .out = out, .bias = bias, .split = split};
}

void add_norm(std::vector<Weight>& to, const Architecture& model, const std::string& name, std::int64_t width) {
  to.push_back(vector_of(name, model.rms ? width : 2 * width));
}

void read_vocabulary(Members& members, Architecture& model, bool tied) {
  model.tied = members.flag_or("tie_word_embeddings", tied);
  Weight table = vector_of("embed_tokens", model.vocabulary * model.width, Part::embedding);
  table.split = Split::outputs;
  model.first.push_back(table);
  add_norm(model.last, model, "norm", model.width);
  if (!model.tied) model.last.push_back(matrix("lm_head", Part::head, Split::outputs, model.width, model.vocabulary));
}

void repeat(Architecture& model, Layer layer, std::int64_t layers) {
  model.kinds = {std::move(layer)};
  model.order.assign(static_cast<std::size_t>(layers), 0);
}

Layer grouped_attention(Members& members, const Architecture& model) {
  const bool gemma = is_gemma(model), qwen3 = model.type == "qwen3" || model.type == "qwen3_moe";
  const bool oss = model.type == "gpt_oss", llama4 = model.type == "llama4_text";
  // Gemma3TextConfig's defaults, which its files leave out.
  const bool short_file = model.type == "gemma3_text";
  const std::int64_t heads =
      short_file ? members.size_or("num_attention_heads", 8) : members.size("num_attention_heads");
  const std::int64_t kv_heads = members.size_or("num_key_value_heads", short_file ? 4 : heads);
  std::int64_t head_dim = members.size_or("head_dim", default_head_dim(model), 0);
  if (head_dim == 0) {
    members.divides("num_attention_heads", heads, model.width);
    head_dim = model.width / heads;
  }
  members.divides("num_key_value_heads", kv_heads, heads);
  const bool every_bias = members.flag_or("attention_bias", oss);
  const bool qkv_bias = model.type == "qwen2" || (model.type == "qwen2_moe" && members.flag_or("qkv_bias", true));
  const std::int64_t queries = heads * head_dim, keys = kv_heads * head_dim;
  Layer layer;
  layer.attention = {.heads = heads, .kv_heads = kv_heads, .key_dim = head_dim, .value_dim = head_dim};
  auto& weights = layer.weights;
  if (model.type == "phi3") {
    weights.push_back(matrix("qkv_proj", Part::attention, Split::outputs, model.width, queries + 2 * keys));
    weights.push_back(matrix("o_proj", Part::attention, Split::inputs, queries, model.width));
  } else {
    const bool bias = every_bias || qkv_bias;
    weights.push_back(matrix("q_proj", Part::attention, Split::outputs, model.width, queries, bias));
    weights.push_back(matrix("k_proj", Part::attention, Split::outputs, model.width, keys, bias));
    weights.push_back(matrix("v_proj", Part::attention, Split::outputs, model.width, keys, bias));
    weights.push_back(matrix("o_proj", Part::attention, Split::inputs, queries, model.width, every_bias));
  }
  if (qwen3 || model.type == "gemma3_text") {
    add_norm(weights, model, "q_norm", head_dim);
    add_norm(weights, model, "k_norm", head_dim);
  }
  if (oss) weights.push_back(vector_of("sinks", heads));
  if (llama4) members.given("use_qk_norm");  // it has no weights
  layer.norms = gemma && model.type != "gemma" ? 4 : 2;
  for (std::int64_t i = 0; i < layer.norms; ++i) add_norm(weights, model, fmt::format("norm_{}", i), model.width);
  return layer;
}

void read_llama(Members& members, Architecture& model) {
  read_vocabulary(members, model, is_gemma(model));
  Layer layer = grouped_attention(members, model);
  add_mlp(members, model, layer);
  repeat(model, std::move(layer), members.size("num_hidden_layers", max_layers));
  read_windows(members, model);
}

void read_gpt_neox(Members& members, Architecture& model) {
  model.rms = model.gated = false;
  read_vocabulary(members, model, false);
  const std::int64_t heads = members.size("num_attention_heads"), width = members.size("intermediate_size");
  members.divides("num_attention_heads", heads, model.width);
  members.given("use_parallel_residual");
  const bool bias = members.flag_or("attention_bias", true);
  const std::int64_t head_dim = model.width / heads;
  Layer layer;
  layer.attention = {.heads = heads, .kv_heads = heads, .key_dim = head_dim, .value_dim = head_dim};
  layer.mlp_width = width;
  layer.weights = {matrix("query_key_value", Part::attention, Split::outputs, model.width, 3 * model.width, bias),
                   matrix("dense", Part::attention, Split::inputs, model.width, model.width, bias),
                   matrix("dense_h_to_4h", Part::mlp, Split::outputs, model.width, width, true),
                   matrix("dense_4h_to_h", Part::mlp, Split::inputs, width, model.width, true)};
  for (const char* name : {"input_layernorm", "post_attention_layernorm"})
    add_norm(layer.weights, model, name, model.width);
  repeat(model, std::move(layer), members.size("num_hidden_layers", max_layers));
}

void read_falcon(Members& members, Architecture& model) {
  model.rms = model.gated = false;
  read_vocabulary(members, model, true);
  model.positions = members.size_or("max_position_embeddings", 2048);
  const std::int64_t heads = members.size("num_attention_heads");
  members.divides("num_attention_heads", heads, model.width);
  const std::int64_t head_dim = model.width / heads;
  const bool newer = members.flag_or("new_decoder_architecture", false);
  const bool one_key = members.flag_or("multi_query", true), parallel = members.flag_or("parallel_attn", true);
  const bool bias = members.flag_or("bias", false);
  members.given("alibi");
  const std::int64_t kv_heads = newer ? members.size_or("num_kv_heads", heads) : one_key ? 1 : heads;
  const std::int64_t norms = members.size_or("num_ln_in_parallel_attn", newer ? 2 : 1);
  const std::int64_t width = members.size_or("ffn_hidden_size", 4 * model.width);
  if (!newer) members.given("num_kv_heads");  // only of the newer form
  const std::int64_t qkv = (heads + 2 * kv_heads) * head_dim;
  Layer layer;
  layer.attention = {.heads = heads, .kv_heads = kv_heads, .key_dim = head_dim, .value_dim = head_dim};
  layer.mlp_width = width;
  layer.weights = {matrix("query_key_value", Part::attention, Split::outputs, model.width, qkv, bias),
                   matrix("dense", Part::attention, Split::inputs, model.width, model.width, bias),
                   matrix("dense_h_to_4h", Part::mlp, Split::outputs, model.width, width, bias),
                   matrix("dense_4h_to_h", Part::mlp, Split::inputs, width, model.width, bias)};
  layer.norms = (newer && norms == 2) || !parallel ? 2 : 1;
  for (std::int64_t i = 0; i < layer.norms; ++i) add_norm(layer.weights, model, fmt::format("norm_{}", i), model.width);
  repeat(model, std::move(layer), members.size("num_hidden_layers", max_layers));
}

}  // namespace assay::architecture
