// Language models with a mixture of experts.
#include "workloads/architecture/readers.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::architecture {

namespace {

// A gated MLP that every token passes.
void add_dense(const Architecture& model, Layer& layer, std::int64_t width, const std::string& prefix = {}) {
  layer.mlp_width = width;
  layer.weights.push_back(matrix(prefix + "gate_proj", Part::mlp, Split::outputs, model.width, width));
  layer.weights.push_back(matrix(prefix + "up_proj", Part::mlp, Split::outputs, model.width, width));
  layer.weights.push_back(matrix(prefix + "down_proj", Part::mlp, Split::inputs, width, model.width));
}

void add_experts(const Architecture& model, Layer& layer, std::int64_t experts, std::int64_t used, std::int64_t width,
                 bool bias = false) {
  layer.experts = experts, layer.experts_used = used, layer.expert_width = width;
  layer.weights.push_back(matrix("router", Part::router, Split::none, model.width, experts, bias));
  for (const auto& [name, in, out, split] : {std::tuple("experts.gate_up_proj", model.width, 2 * width, Split::outputs),
                                             {"experts.down_proj", width, model.width, Split::inputs}}) {
    Weight weight = matrix(name, Part::experts, split, in, out, bias);
    weight.copies = experts, weight.used = used;
    layer.weights.push_back(weight);
  }
}

std::int64_t used_experts(Members& members, const char* name, std::int64_t experts) {
  const std::int64_t used = members.size(name);
  if (used > experts && members.given(name))
    members.given(name)->error(fmt::format("a token cannot use {} of {} experts", used, experts));
  return std::min(used, experts);
}

// The number of experts has two names among files of one type.
std::int64_t experts_of(Members& members) {
  const bool local = members.given("num_local_experts").has_value();
  const std::int64_t other = members.size_or("num_experts", 1);
  return local || !members.given("num_experts") ? members.size("num_local_experts") : other;
}

}  // namespace

void read_mixture(Members& members, Architecture& model) {
  read_vocabulary(members, model, false);
  const Layer attention = grouped_attention(members, model);
  const std::int64_t layers = members.size("num_hidden_layers", max_layers), experts = experts_of(members);
  const std::int64_t used = used_experts(members, "num_experts_per_tok", experts);
  Layer dense = attention, sparse = attention;
  const bool qwen = model.type.starts_with("qwen"), llama4 = model.type == "llama4_text";
  std::int64_t step = 1;
  std::vector<std::int64_t> dense_layers;
  if (qwen) {
    add_experts(model, sparse, experts, used, members.size("moe_intermediate_size"));
    if (model.type == "qwen2_moe") {
      add_dense(model, sparse, members.size("shared_expert_intermediate_size"), "shared_expert.");
      sparse.weights.push_back(matrix("shared_expert_gate", Part::router, Split::none, model.width, 1));
    } else {
      members.given("shared_expert_intermediate_size");
    }
    step = members.size_or("decoder_sparse_step", 1);
    dense_layers = members.sizes("mlp_only_layers").value_or(std::vector<std::int64_t>());
  } else {
    const std::int64_t width = members.size("intermediate_size");
    add_experts(model, sparse, experts, used, width, model.type == "gpt_oss");
    if (llama4) {
      add_dense(model, sparse, width, "shared_expert.");
      step = members.size_or("interleave_moe_layer_step", 1);
    }
  }
  const auto chosen = llama4 ? members.sizes("moe_layers") : std::nullopt;
  const auto is_sparse = [&](std::int64_t index) {
    if (chosen) return std::ranges::find(*chosen, index) != chosen->end();
    return (index + 1) % step == 0 && std::ranges::find(dense_layers, index) == dense_layers.end();
  };
  repeat(model, sparse, layers);
  bool any_dense = false;
  for (std::int64_t i = 0; i < layers; ++i) any_dense = any_dense || !is_sparse(i);
  const char* width_of_dense = llama4 ? "intermediate_size_mlp" : "intermediate_size";
  if (any_dense) {
    add_dense(model, dense, members.size(width_of_dense));
    model.kinds.push_back(dense);
  } else {
    members.given(width_of_dense);
  }
  for (std::size_t i = 0; i < model.order.size(); ++i) model.order[i] = is_sparse(static_cast<std::int64_t>(i)) ? 0 : 1;
  // Sliding and full attention alternate in gpt_oss; Mixtral's window is of all layers, qwen's is off in published
  // files.
  const bool on = !qwen || members.flag_or("use_sliding_window", false);
  const std::int64_t window = members.size_or("sliding_window", 0, 0);
  members.given("max_window_layers");
  const auto types = members.texts("layer_types");
  const std::int64_t chunk = llama4 ? members.size_or("attention_chunk_size", 0, 0) : 0;
  const std::int64_t back = llama4 ? chunk : on ? window : 0;
  if (back <= 0 || back >= model.positions) return;
  const std::size_t plain = model.kinds.size();
  for (std::size_t i = 0; i < plain; ++i) {
    Layer sliding = model.kinds[i];
    sliding.attention.window = back;
    model.kinds.push_back(sliding);
  }
  for (std::size_t i = 0; i < model.order.size(); ++i) {
    const std::size_t period = model.type == "gpt_oss" ? 2 : llama4 ? 4 : 0;
    const bool slides =
        types && i < types->size() ? types->at(i) != "full_attention" : period == 0 || (i + 1) % period != 0;
    if (slides) model.order[i] += plain;
  }
}

// DeepSeek-V2 (arXiv 2405.04434) and V3: multi-head latent attention, shared experts, the first layers dense.
void read_deepseek(Members& members, Architecture& model) {
  read_vocabulary(members, model, false);
  const std::int64_t heads = members.size("num_attention_heads"), rope = members.size("qk_rope_head_dim");
  const std::int64_t nope = members.size("qk_nope_head_dim"), value = members.size("v_head_dim");
  const std::int64_t latent = members.size("kv_lora_rank");
  const std::int64_t queries = members.size_or("q_lora_rank", 0, 0);
  const bool bias = members.flag_or("attention_bias", false);
  if (members.size_or("num_nextn_predict_layers", 0, 0) > 0)
    model.notes.emplace_back("layers of num_nextn_predict_layers, which predict further tokens, are not counted");
  members.given("num_key_value_heads");
  members.given("head_dim");
  members.given("qk_head_dim");
  Layer attention;
  attention.attention = {
      .heads = heads, .kv_heads = heads, .key_dim = nope + rope, .value_dim = value, .latent = latent + rope};
  auto& weights = attention.weights;
  const std::int64_t query = heads * (nope + rope);
  if (queries > 0) {
    weights.push_back(matrix("q_a_proj", Part::attention, Split::none, model.width, queries, bias));
    add_norm(weights, model, "q_a_layernorm", queries);
    weights.push_back(matrix("q_b_proj", Part::attention, Split::outputs, queries, query));
  } else {
    weights.push_back(matrix("q_proj", Part::attention, Split::outputs, model.width, query));
  }
  weights.push_back(matrix("kv_a_proj_with_mqa", Part::attention, Split::none, model.width, latent + rope, bias));
  add_norm(weights, model, "kv_a_layernorm", latent);
  weights.push_back(matrix("kv_b_proj", Part::attention, Split::outputs, latent, heads * (nope + value)));
  weights.push_back(matrix("o_proj", Part::attention, Split::inputs, heads * value, model.width, bias));
  for (const char* name : {"input_layernorm", "post_attention_layernorm"}) add_norm(weights, model, name, model.width);
  Layer dense = attention, sparse = attention;
  add_dense(model, dense, members.size("intermediate_size"));
  const std::int64_t experts = members.size("n_routed_experts");
  const std::int64_t width = members.size("moe_intermediate_size");
  add_experts(model, sparse, experts, used_experts(members, "num_experts_per_tok", experts), width);
  add_dense(model, sparse, members.size_or("n_shared_experts", 1) * width, "shared_experts.");
  const std::int64_t first_sparse = members.size_or("first_k_dense_replace", 0, 0);
  const std::int64_t step = members.size_or("moe_layer_freq", 1);
  repeat(model, sparse, members.size("num_hidden_layers", max_layers));
  model.kinds.push_back(dense);
  for (std::size_t i = 0; i < model.order.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    model.order[i] = index >= first_sparse && index % step == 0 ? 0 : 1;
  }
}

}  // namespace assay::architecture
