// Models from Hugging Face's config.json: published parameter counts, what each architecture means, and refusals.
#include "harness/core/error.h"
#include "harness/json/json.h"
#include "tests/support/refusal.h"
#include "workloads/transformer/transformer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace assay::transformer {
namespace {

using testing::HasSubstr;

Json published(const std::string& name) { return read_json(ASSAY_SOURCE "/tests/models/" + name + "/config.json"); }

Config config_of(const std::string& name) { return read_config(published(name), "config.json", name); }

std::int64_t parameters_of(const std::string& name, const std::string& without = "none") {
  std::int64_t count = 0;
  for (const nn::ParameterSpec& spec : make_transformer(config_of(name))->parameters())
    if (!spec.name.starts_with(without)) count += spec.count();
  return count;
}

std::string refusal(const std::string& name, const std::function<void(Json&)>& change) {
  Json json = published(name);
  change(json);
  return test::refusal([&] { read_config(json, "config.json", "changed"); });
}

TEST(HuggingFace, ModelsHaveTheirPublishedParameterCounts) {
  EXPECT_EQ(parameters_of("llama-2-7b"), 6738415616);
  EXPECT_EQ(parameters_of("llama-3-8b"), 8030261248);
  EXPECT_EQ(parameters_of("llama-3.2-1b"), 1235814400);
  EXPECT_EQ(parameters_of("mistral-7b"), 7241732096);
  EXPECT_EQ(parameters_of("qwen2-7b"), 7615616512);
  EXPECT_EQ(parameters_of("gpt2"), 124439808);
  EXPECT_EQ(parameters_of("bert-base-uncased"), 109514298);           // BertForMaskedLM
  EXPECT_EQ(parameters_of("bert-base-uncased", "head."), 108891648);  // its encoder: BertModel without the pooler
}

TEST(HuggingFace, AFileIsTheModelOfOursThatItDescribes) {
  const Config one = config_of("llama-3.2-1b");
  const std::string path = ASSAY_SOURCE "/configs/models/llama-1b.json";
  const Config own = read_config(read_json(path), path, "llama-1b");
  EXPECT_EQ(one.family, "llama");
  EXPECT_EQ(one.kv_heads, own.kv_heads);
  EXPECT_EQ(one.head_dim, own.head_dim);
  EXPECT_EQ(one.positions, own.positions);
  EXPECT_EQ(one.norm_epsilon, own.norm_epsilon);
  ASSERT_TRUE(one.rotary_scaling);
  for (const std::int64_t pair : {0, 10, 16, 31}) EXPECT_EQ(rotary_frequency(one, pair), rotary_frequency(own, pair));
  const Config gpt2 = config_of("gpt2");
  EXPECT_EQ(gpt2.family, "transformer");
  EXPECT_EQ(gpt2.mlp_width, 3072);
  EXPECT_EQ(gpt2.mlp, ops::ActivationKind::gelu_tanh);
  EXPECT_TRUE(gpt2.tied && gpt2.causal && gpt2.scaled_residual && !gpt2.post_norm);
  const Config bert = config_of("bert-base-uncased");
  EXPECT_EQ(bert.mlp, ops::ActivationKind::gelu_erf);
  EXPECT_TRUE(bert.post_norm && !bert.causal && bert.padding_mask && bert.head_transform && bert.tied);
  const Config qwen = config_of("qwen2-7b");
  EXPECT_TRUE(qwen.qkv_bias && !qwen.bias);
  EXPECT_EQ(qwen.window, 0);
  EXPECT_EQ(qwen.rotary_base, 1e6);
}

TEST(HuggingFace, OtherSpellingsAreUnderstood) {
  Json json = published("llama-3.2-1b");
  json["rope_parameters"] = json["rope_scaling"];
  json["rope_parameters"]["rope_theta"] = json["rope_theta"];
  json.erase("rope_scaling");
  json.erase("rope_theta");
  const Config newer = read_config(json, "config.json", "newer");
  EXPECT_EQ(newer.rotary_base, 500000);
  EXPECT_TRUE(newer.rotary_scaling);
  json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 1e4}};
  EXPECT_FALSE(read_config(json, "config.json", "plain").rotary_scaling);
  json.erase("model_type");
  EXPECT_EQ(read_config(json, "config.json", "untyped").layers, 16);
  json["head_dim"] = nullptr;
  json.erase("num_key_value_heads");
  const Config bare = read_config(json, "config.json", "bare");
  EXPECT_EQ(bare.head_dim, 64);
  EXPECT_EQ(bare.kv_heads, 32);
}

TEST(HuggingFace, OtherArchitecturesAreRefusedByName) {
  const auto told = refusal("llama-2-7b", [](Json& j) { j["model_type"] = "mixtral"; });
  EXPECT_THAT(told, HasSubstr("config.json: /model_type: the architecture \"mixtral\" is not supported; supported: "));
  for (const char* name : {"bert", "gpt2", "llama", "mistral", "qwen2"}) EXPECT_THAT(told, HasSubstr(name));
  EXPECT_THAT(refusal("llama-2-7b",
                      [](Json& j) {
                        j.erase("model_type");
                        j["architectures"] = {"T5ForConditionalGeneration"};
                      }),
              HasSubstr("/architectures/0: the architecture \"T5ForConditionalGeneration\""));
}

TEST(HuggingFace, WhatIsMissingIsNamed) {
  for (const char* name : {"vocab_size", "max_position_embeddings", "hidden_size", "intermediate_size",
                           "num_hidden_layers", "num_attention_heads"})
    EXPECT_THAT(refusal("llama-2-7b", [&](Json& j) { j.erase(name); }),
                HasSubstr(fmt::format("\"{}\" is missing", name)));
  for (const char* name : {"n_positions", "n_embd", "n_layer", "n_head"})
    EXPECT_THAT(refusal("gpt2", [&](Json& j) { j.erase(name); }), HasSubstr(fmt::format("\"{}\" is missing", name)));
  // Their libraries' defaults would be another model's.
  EXPECT_THAT(refusal("mistral-7b", [](Json& j) { j.erase("num_key_value_heads"); }), HasSubstr("is missing"));
  EXPECT_THAT(refusal("llama-3.2-1b", [](Json& j) { j["rope_scaling"].erase("factor"); }),
              HasSubstr("/rope_scaling: \"factor\" is missing"));
}

TEST(HuggingFace, WhatThisBuildLacksIsNamed) {
  const auto says = [](const char* model, const char* member, const Json& value, const char* part) {
    const auto told = refusal(model, [&](Json& j) { j[member] = value; });
    EXPECT_THAT(told, HasSubstr(fmt::format("config.json: /{}", member)));
    EXPECT_THAT(told, HasSubstr(part)) << member;
  };
  says("llama-2-7b", "rope_scaling", {{"type", "linear"}, {"factor", 2.0}}, "the rotary scaling \"linear\"");
  says("llama-2-7b", "rope_scaling", {{"rope_type", "yarn"}, {"factor", 2.0}}, "supported: default, llama3");
  says("llama-2-7b", "num_local_experts", 8, "no mixture of experts");
  says("llama-2-7b", "hidden_act", "gelu", "only \"silu\"");
  says("llama-2-7b", "attention_bias", true, "only one of attention and MLP");
  says("llama-2-7b", "partial_rotary_factor", 0.5, "all of a head is rotated");
  says("llama-2-7b", "sliding_window", 1024, "all earlier tokens");
  says("llama-2-7b", "quantization_config", {{"bits", 4}}, "is not supported");
  says("gpt2", "scale_attn_by_inverse_layer_idx", true, "only false");
  says("gpt2", "activation_function", "relu", "\"relu\" is not a valid value");
  says("bert-base-uncased", "position_embedding_type", "relative_key", "only \"absolute\"");
  says("bert-base-uncased", "is_decoder", true, "encoder");
  says("bert-base-uncased", "type_vocab_size", 1, "carries no information");
}

// Longer sequences would need attention within the window only.
TEST(HuggingFace, AWindowLimitsTheSequence) {
  const auto model = make_transformer(config_of("mistral-7b"));
  EXPECT_GT(model->cost({1, 4096}).forward, 0);
  EXPECT_THAT(test::refusal([&] {
                (void)model->cost({1, 4097});
              }),
              HasSubstr("seq 4097 is beyond the sliding window of 4096 tokens"));
  Json json = published("mistral-7b");
  json.erase("sliding_window");  // MistralConfig's default
  EXPECT_EQ(read_config(json, "config.json", "m").window, 4096);
  json["sliding_window"] = nullptr;
  EXPECT_EQ(read_config(json, "config.json", "m").window, 0);
  json = published("qwen2-7b");
  json["use_sliding_window"] = true;
  EXPECT_EQ(read_config(json, "config.json", "q").window, 0) << "it spans all positions";
  json["sliding_window"] = 4096;
  EXPECT_EQ(read_config(json, "config.json", "q").window, 4096);
}

TEST(HuggingFace, HostileSizesAreRefused) {
  const auto says = [](const char* member, const Json& value, const char* part) {
    EXPECT_THAT(refusal("llama-2-7b", [&](Json& j) { j[member] = value; }), HasSubstr(part)) << member << value;
  };
  says("hidden_size", 0, "/hidden_size: 0 is too small");
  says("hidden_size", -4096, "too small");
  says("hidden_size", 1e300, "must be an integer");
  says("hidden_size", "4096", "must be an integer");
  says("hidden_size", nullptr, "must be an integer");
  says("num_hidden_layers", 1000000000, "too large: at most 1024");
  says("vocab_size", std::int64_t{1} << 62, "too large");
  says("num_attention_heads", 31, "/num_attention_heads: 31 heads do not divide the width 4096");
  says("num_key_value_heads", 5, "/num_key_value_heads: 5 key and value heads do not divide 32 heads");
  says("head_dim", 127, "/head_dim: rotary positions rotate pairs");
  says("rms_norm_eps", -1, "/rms_norm_eps: ");
  says("rope_scaling", 3, "/rope_scaling: ");
  says("rope_scaling", Json::object(), "\"type\" is missing");
  says("model_type", 3, "/model_type: must be text");
  EXPECT_THAT(
      refusal("llama-2-7b", [](Json& j) { j["hidden_size"] = j["intermediate_size"] = j["head_dim"] = 1 << 24; }),
      HasSubstr("parameters are beyond"));
  EXPECT_THAT(refusal("llama-2-7b",
                      [](Json& j) {
                        j.erase("model_type");
                        j["architectures"] = Json::array();
                      }),
              HasSubstr("\"model_type\" is missing"));
}

}  // namespace
}  // namespace assay::transformer
