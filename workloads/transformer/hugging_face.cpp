#include "workloads/transformer/hugging_face.h"

#include "harness/core/text.h"
#include "harness/json/json.h"
#include "workloads/transformer/config_reader.h"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace assay::transformer {

namespace {

enum class Kind { bert, gpt2, llama, mistral, qwen2 };

struct Known {
  Kind kind;
  const char* type;          // model_type
  const char* architecture;  // for files without a model_type
};
constexpr std::array<Known, 5> known = {{{Kind::bert, "bert", "BertForMaskedLM"},
                                         {Kind::gpt2, "gpt2", "GPT2LMHeadModel"},
                                         {Kind::llama, "llama", "LlamaForCausalLM"},
                                         {Kind::mistral, "mistral", "MistralForCausalLM"},
                                         {Kind::qwen2, "qwen2", "Qwen2ForCausalLM"}}};

void refuse_architecture(const Cursor& at, std::string_view name) {
  std::vector<std::string> supported;
  supported.reserve(known.size());
  for (const Known& each : known) supported.push_back(fmt::format("{} ({})", each.type, each.architecture));
  at.error(
      fmt::format("the architecture {} is not supported; supported: {}", in_quotes(name), fmt::join(supported, ", ")));
}

std::optional<Kind> kind_of_model(const Cursor& cursor) {
  const auto find = [](const Cursor& at, std::string_view name, const char* Known::*member) -> std::optional<Kind> {
    for (const Known& each : known)
      if (name == each.*member) return each.kind;
    refuse_architecture(at, name);
    return std::nullopt;
  };
  if (const auto type = given(cursor, "model_type")) {
    const auto name = type->text();
    return name ? find(*type, *name, &Known::type) : std::nullopt;
  }
  const auto list = cursor.find("architectures");
  const std::vector<Cursor> names = list ? list->elements() : std::vector<Cursor>();
  if (names.empty()) {
    cursor.error("\"model_type\" is missing");
    return std::nullopt;
  }
  const auto name = names.front().text();
  return name ? find(names.front(), *name, &Known::architecture) : std::nullopt;
}

// Refuses a member with any other value than this, which is also its default.
void only(const Cursor& cursor, const char* name, const Json& value, const char* why) {
  const auto member = given(cursor, name);
  if (member && member->json() != value)
    member->error(
        fmt::format("{} is not supported, only {}: {}", one_line(member->json().dump(), 60), value.dump(), why));
}

void read_activation(const Cursor& cursor, const char* name, Config& config) {
  const auto member = cursor.need(name);
  if (!member) return;
  static const std::vector<std::string> names = {"gelu", "gelu_new", "gelu_pytorch_tanh"};
  const auto word = member->choice(names);
  if (word) config.mlp = *word == "gelu" ? ops::ActivationKind::gelu_erf : ops::ActivationKind::gelu_tanh;
}

void read_llama3_scaling(const Cursor& scaling, Config& config) {
  RotaryScaling values;
  const ConfigReader reader(scaling, true);
  reader.need_real("factor", values.factor, 1.0, 1e6);
  reader.need_real("low_freq_factor", values.low_frequency_factor, 1e-6, 1e6);
  reader.need_real("high_freq_factor", values.high_frequency_factor, 1e-6, 1e6);
  reader.need_real("original_max_position_embeddings", values.original_positions, 1.0, 1e9);
  if (values.high_frequency_factor <= values.low_frequency_factor)
    scaling.error("high_freq_factor must be larger than low_freq_factor");
  config.rotary_scaling = values;
}

// rope_scaling, or rope_parameters of newer files, which also holds rope_theta.
void read_rope(const Cursor& cursor, Config& config) {
  ConfigReader(cursor, true).real("rope_theta", config.rotary_base, 1.0, 1e12);
  only(cursor, "partial_rotary_factor", 1.0, "all of a head is rotated");
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const auto scaling = given(cursor, name);
    if (!scaling || !scaling->object()) continue;
    ConfigReader(*scaling, true).real("rope_theta", config.rotary_base, 1.0, 1e12);
    const auto type = given(*scaling, "rope_type") ? given(*scaling, "rope_type") : scaling->need("type");
    const auto kind = type ? type->text() : std::nullopt;
    if (!kind || *kind == "default") continue;
    if (*kind == "llama3")
      read_llama3_scaling(*scaling, config);
    else
      type->error(fmt::format("the rotary scaling {} is not supported; supported: default, llama3", in_quotes(*kind)));
  }
}

// Sequences within the window attend to all that came before: for them there is no difference.
void read_window(const Cursor& cursor, Kind kind, Config& config) {
  if (kind == Kind::qwen2) {
    bool used = false;
    ConfigReader(cursor, true).flag("use_sliding_window", used);
    if (!used) return;
  } else if (kind != Kind::mistral) {
    only(cursor, "sliding_window", nullptr, "attention to all earlier tokens");
    return;
  }
  // MistralConfig's default, and Qwen2Config's.
  std::int64_t window = 4096;
  const auto member = cursor.find("sliding_window");
  if (member && member->json().is_null()) return;
  ConfigReader(cursor, true).size_or("sliding_window", window, window);
  if (window < config.positions) config.window = window;
}

void read_llama(const Cursor& cursor, Kind kind, Config& config) {
  const ConfigReader reader(cursor, true);
  config.family = "llama";
  reader.size("max_position_embeddings", config.positions);
  reader.size("num_hidden_layers", config.layers, 1, max_layers);
  reader.size("hidden_size", config.width);
  reader.size("num_attention_heads", config.heads);
  // Where it is absent, the library's default for the two others is a fixed number that suits only one of their models.
  if (kind == Kind::llama)
    reader.size_or("num_key_value_heads", config.kv_heads, config.heads);
  else
    reader.size("num_key_value_heads", config.kv_heads);
  reader.size_or("head_dim", config.head_dim, 0);
  reader.size("intermediate_size", config.mlp_width);
  config.norm = ops::NormKind::rms;
  config.norm_epsilon = 1e-6;
  reader.real("rms_norm_eps", config.norm_epsilon, 1e-12, 1.0);
  config.position = Position::rotary;
  config.mlp = ops::ActivationKind::silu_gate;
  only(cursor, "hidden_act", "silu", "a gated MLP has silu");
  config.tied = false;
  reader.flag("tie_word_embeddings", config.tied);
  bool attention_bias = false, mlp_bias = false;
  reader.flag("attention_bias", attention_bias);
  reader.flag("mlp_bias", mlp_bias);
  if (attention_bias != mlp_bias)
    cursor.find(attention_bias ? "attention_bias" : "mlp_bias")
        ->error("a bias in only one of attention and MLP is not supported");
  config.bias = attention_bias && mlp_bias;
  config.qkv_bias = kind == Kind::qwen2;
  read_rope(cursor, config);
  read_window(cursor, kind, config);
}

void read_gpt2(const Cursor& cursor, Config& config) {
  const ConfigReader reader(cursor, true);
  reader.size("n_positions", config.positions);
  reader.size("n_layer", config.layers, 1, max_layers);
  reader.size("n_embd", config.width);
  reader.size("n_head", config.heads);
  config.kv_heads = config.heads;
  reader.size_or("n_inner", config.mlp_width, 4 * config.width);
  reader.real("layer_norm_epsilon", config.norm_epsilon, 1e-12, 1.0);
  config.mlp = ops::ActivationKind::gelu_tanh;
  if (given(cursor, "activation_function")) read_activation(cursor, "activation_function", config);
  reader.flag("tie_word_embeddings", config.tied);
  config.scaled_residual = true;
  only(cursor, "scale_attn_weights", true, "scores are divided by the root of head_dim");
  only(cursor, "scale_attn_by_inverse_layer_idx", false, "scores are divided by the root of head_dim alone");
  only(cursor, "add_cross_attention", false, "there is no encoder to attend to");
}

void read_bert(const Cursor& cursor, Config& config) {
  const ConfigReader reader(cursor, true);
  reader.size("max_position_embeddings", config.positions);
  reader.size("num_hidden_layers", config.layers, 1, max_layers);
  reader.size("hidden_size", config.width);
  reader.size("num_attention_heads", config.heads);
  config.kv_heads = config.heads;
  reader.size("intermediate_size", config.mlp_width);
  config.norm_epsilon = 1e-12;
  reader.real("layer_norm_eps", config.norm_epsilon, 1e-12, 1.0);
  read_activation(cursor, "hidden_act", config);
  reader.size_or("type_vocab_size", config.token_types, 2);
  only(cursor, "position_embedding_type", "absolute", "positions are embedded");
  only(cursor, "is_decoder", false, "bert is an encoder");
  only(cursor, "add_cross_attention", false, "there is no other sequence to attend to");
  reader.flag("tie_word_embeddings", config.tied);
  config.post_norm = true;
  config.causal = false;
  config.padding_mask = true;
  config.head_transform = true;
}

}  // namespace

bool is_hugging_face(const Json& json) {
  return json.is_object() && !json.contains("schema") &&
         (json.contains("model_type") || json.contains("architectures"));
}

void read_hugging_face(const Cursor& cursor, Config& config) {
  const auto kind = kind_of_model(cursor);
  if (!kind) return;
  const ConfigReader reader(cursor, true);
  reader.size("vocab_size", config.vocabulary, 2);
  for (const char* name : {"num_local_experts", "num_experts", "n_routed_experts"})
    only(cursor, name, nullptr, "no mixture of experts");
  only(cursor, "quantization_config", nullptr, "weights are trained in the precision that the step has");
  reader.real("initializer_range", config.deviation, 1e-6, 10.0);
  switch (*kind) {
    case Kind::gpt2: return read_gpt2(cursor, config);
    case Kind::bert: return read_bert(cursor, config);
    default: return read_llama(cursor, *kind, config);
  }
}

}  // namespace assay::transformer
