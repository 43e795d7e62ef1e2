// BERT-like encoders, GPT-2 and vision transformers: learned positions, layer norms, MLPs of two matrices.
#include "workloads/architecture/readers.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::architecture {

namespace {

Layer plain_layer(Architecture& model, std::int64_t heads, std::int64_t width, bool qkv_bias, bool fused) {
  model.rms = model.gated = false;
  const std::int64_t h = model.width, head_dim = h / heads;
  Layer layer;
  layer.attention = {.heads = heads, .kv_heads = heads, .key_dim = head_dim, .value_dim = head_dim};
  layer.mlp_width = width;
  if (fused)
    layer.weights.push_back(matrix("c_attn", Part::attention, Split::outputs, h, 3 * h, qkv_bias));
  else
    for (const char* name : {"query", "key", "value"})
      layer.weights.push_back(matrix(name, Part::attention, Split::outputs, h, h, qkv_bias));
  layer.weights.push_back(matrix("attention.output", Part::attention, Split::inputs, h, h, true));
  layer.weights.push_back(matrix("intermediate", Part::mlp, Split::outputs, h, width, true));
  layer.weights.push_back(matrix("output", Part::mlp, Split::inputs, width, h, true));
  for (const char* name : {"norm_0", "norm_1"}) add_norm(layer.weights, model, name, h);
  return layer;
}

Layer encoder_layer(Members& members, Architecture& model, bool qkv_bias) {
  const std::int64_t heads = members.size("num_attention_heads"), width = members.size("intermediate_size");
  members.divides("num_attention_heads", heads, model.width);
  return plain_layer(model, heads, width, qkv_bias, false);
}

void add_table(Architecture& model, const char* name, std::int64_t rows, bool divided = false) {
  Weight table = vector_of(name, rows * model.width, Part::embedding);
  if (divided) table.split = Split::outputs;
  model.first.push_back(table);
}

}  // namespace

void read_bert(Members& members, Architecture& model) {
  model.causal = false;
  Layer layer = encoder_layer(members, model, true);
  const std::int64_t positions = members.size("max_position_embeddings");
  add_table(model, "word_embeddings", model.vocabulary, true);
  add_table(model, "position_embeddings", positions);
  add_table(model, "token_type_embeddings", members.size_or("type_vocab_size", 2));
  // RoBERTa's first two positions are not of tokens.
  model.positions = model.type == "roberta" && positions > 2 ? positions - 2 : positions;
  const auto kind = members.given("position_embedding_type");
  if (kind && kind->text() != "absolute") kind->error("only positions that are embedded are known: absolute");
  add_norm(model.first, model, "LayerNorm", model.width);
  model.tied = members.flag_or("tie_word_embeddings", true);
  model.last.push_back(matrix("transform", Part::head, Split::none, model.width, model.width, true));
  add_norm(model.last, model, "transform.LayerNorm", model.width);
  if (model.tied)
    model.last.push_back(vector_of("decoder.bias", model.vocabulary, Part::head));
  else
    model.last.push_back(matrix("decoder", Part::head, Split::outputs, model.width, model.vocabulary, true));
  repeat(model, std::move(layer), members.size("num_hidden_layers", max_layers));
}

void read_gpt2(Members& members, Architecture& model) {
  const std::int64_t heads = members.size("n_head"), layers = members.size("n_layer", max_layers);
  members.divides("n_head", heads, model.width);
  model.positions = members.size("n_positions");
  members.given("n_ctx");
  Layer layer = plain_layer(model, heads, members.size_or("n_inner", 4 * model.width), true, true);
  read_vocabulary(members, model, true);
  add_table(model, "wpe", model.positions);
  repeat(model, std::move(layer), layers);
}

void read_vit(Members& members, Architecture& model) {
  model.causal = false;
  Layer layer = encoder_layer(members, model, members.flag_or("qkv_bias", true));
  const std::int64_t image = members.size_or("image_size", 224), patch = members.size_or("patch_size", 16);
  const std::int64_t channels = members.size_or("num_channels", 3);
  members.divides("patch_size", patch, image);
  constexpr std::int64_t largest = 1 << 15;
  if (std::max({image, patch, channels}) > largest)
    members.cursor().error(fmt::format("image_size, patch_size and num_channels must be at most {}", largest));
  if (!members.cursor().problems().empty()) return;
  model.patches = (image / patch) * (image / patch);
  model.positions = model.patches + 1;  // one of the class
  // PretrainedConfig's default is two labels.
  const auto names = members.given("id2label");
  model.labels = members.size_or("num_labels", names && names->json().is_object() && !names->json().empty()
                                                   ? static_cast<std::int64_t>(names->json().size())
                                                   : 2);
  model.first.push_back(vector_of("cls_token", model.width, Part::embedding));
  add_table(model, "position_embeddings", model.positions);
  model.first.push_back(
      matrix("patch_embeddings", Part::embedding, Split::none, channels * patch * patch, model.width, true));
  add_norm(model.last, model, "layernorm", model.width);
  model.last.push_back(matrix("classifier", Part::head, Split::none, model.width, model.labels, true));
  repeat(model, std::move(layer), members.size("num_hidden_layers", max_layers));
}

}  // namespace assay::architecture
