#include "workloads/architecture/members.h"

#include <fmt/format.h>

#include <iterator>
#include <sstream>

namespace assay::architecture {

namespace {

// Members that change no byte of weights, activations or caches, whatever their value. docs/planning.md lists those
// that do.
constexpr std::string_view harmless = R"(
_attn_implementation _attn_implementation_autoset _attn_implementation_internal _experts_implementation
_name_or_path activation_function apply_residual_connection_post_layernorm architectures
attention_dropout attention_probs_dropout_prob attn_logit_softcapping attn_pdrop attn_scale attn_temperature_tuning
auto_map aux_loss_alpha bos_token_id cache_implementation chunk_size_feed_forward classifier_dropout
cross_attention_hidden_size decoder_start_token_id dtype embd_pdrop encoder_stride eos_token_id ep_size
experts_per_token final_logit_softcapping finetuning_task floor_scale for_llm_compressor gradient_checkpointing
hidden_act hidden_activation hidden_dropout hidden_dropout_prob id2label initial_context_length initializer_factor
initializer_range is_decoder label2id layer_norm_eps layer_norm_epsilon layer_types mlp_dropout
model_type n_group no_rope_layer_interval no_rope_layers norm_topk_prob
original_max_position_embeddings output_attentions output_hidden_states output_past output_router_logits
pad_token_id partial_rotary_factor pooler_act pooler_output_size pretraining_tp problem_type query_pre_attn_scalar
reorder_and_upcast_attn resid_pdrop return_dict rms_norm_eps rope_interleave rope_local_base_freq rope_parameters
rope_scaling rope_theta rotary_emb_base rotary_pct router_aux_loss_coef router_jitter_noise routed_scaling_factor
scale_attn_by_inverse_layer_idx scale_attn_weights scoring_func seq_aux sep_token_id summary_activation
summary_first_dropout summary_proj_to_labels summary_type summary_use_proj swiglu_limit task_specific_params
tokenizer_class topk_group topk_method torch_dtype transformers_version use_bidirectional_attention use_cache
use_mrope vision_feature_layer
)";

bool is_harmless(const std::string& name) {
  static const std::set<std::string> names = [] {
    std::istringstream words{std::string(harmless)};
    return std::set<std::string>(std::istream_iterator<std::string>(words), {});
  }();
  return names.contains(name);
}

}  // namespace

std::optional<Cursor> Members::given(std::string_view name) {
  read_.emplace(name);
  const auto member = cursor_.find(name);
  return member && !member->json().is_null() ? member : std::nullopt;
}

std::int64_t Members::size(const char* name, std::int64_t max) {
  const auto member = given(name);
  if (!member) cursor_.error(fmt::format("\"{}\" is missing", name));
  return member ? member->integer(1, max).value_or(1) : 1;
}

std::int64_t Members::size_or(const char* name, std::int64_t fallback, std::int64_t min) {
  const auto member = given(name);
  return member ? member->integer(min, max_size).value_or(fallback) : fallback;
}

bool Members::flag_or(const char* name, bool fallback) {
  const auto member = given(name);
  return member ? member->flag().value_or(fallback) : fallback;
}

std::optional<std::vector<std::int64_t>> Members::sizes(const char* name) {
  const auto member = given(name);
  if (!member) return std::nullopt;
  std::vector<std::int64_t> all;
  for (const Cursor& each : member->elements()) all.push_back(each.integer(0, max_size).value_or(0));
  return all;
}

std::optional<std::vector<std::string>> Members::texts(const char* name) {
  const auto member = given(name);
  if (!member) return std::nullopt;
  std::vector<std::string> all;
  for (const Cursor& each : member->elements()) all.push_back(each.text().value_or(""));
  return all;
}

void Members::divides(const char* name, std::int64_t a, std::int64_t b) {
  if (a < 1 || b % a == 0) return;
  const auto member = cursor_.find(name);
  (member ? *member : cursor_).error(fmt::format("{} {} do not divide {}", name, a, b));
}

std::vector<std::string> Members::unknown() const {
  std::vector<std::string> names;
  if (cursor_.json().is_object())
    for (const auto& [name, value] : cursor_.json().items())
      // False and null ask for nothing.
      if (!read_.contains(name) && !is_harmless(name) && !value.is_null() && value != false) names.push_back(name);
  return names;
}

}  // namespace assay::architecture
