// Architectures of published models: parameters as transformers counts them, caches, stored weights, notes and
// refusals.
#include "workloads/architecture/read.h"

#include "tests/support/published_models.h"
#include "tests/support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace assay::architecture {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

using test::published_architecture;
using test::published_config;
using test::published_models;

std::string refused_config(const Json& json) {
  return test::refusal([&] { read_architecture(json, "config.json", "changed"); });
}

std::int64_t cached_of_token(const Architecture& model) {
  std::int64_t elements = 0;
  for (const std::size_t kind : model.order) elements += model.kinds.at(kind).attention.cached();
  return elements;
}

// tests/soak/architectures_test.py counts them again with transformers on the meta device.
TEST(Architecture, ParametersAreWhatTransformersCounts) {
  std::set<std::string> types;
  for (const Json& each : published_models()) {
    const std::string name = each.at("name").get<std::string>();
    const Architecture model = published_architecture(name);
    EXPECT_EQ(model.parameters(), each.at("parameters").get<std::int64_t>()) << name;
    EXPECT_EQ(model.active_parameters(), each.at("active").get<std::int64_t>()) << name;
    for (const std::string& note : model.notes)
      EXPECT_TRUE(note.starts_with("weights are stored") || note.starts_with("only the language"))
          << name << ": " << note;
    types.insert(model.type);
  }
  const std::vector<std::string> known = known_types();
  EXPECT_EQ(types, std::set<std::string>(known.begin(), known.end()));
}

// Figures of the models' cards and papers, which round.
TEST(Architecture, ParametersAreNearWhatWasAnnounced) {
  EXPECT_NEAR(static_cast<double>(published_architecture("mixtral-8x7b").active_parameters()), 12.9e9, 0.05e9);
  EXPECT_NEAR(static_cast<double>(published_architecture("deepseek-v3").parameters()), 671e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(published_architecture("qwen3-235b-a22b").active_parameters()), 22e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(published_architecture("gpt-oss-120b").parameters()), 116.8e9, 0.1e9);
}

TEST(Architecture, CachesAreOfGroupedLatentAndSlidingAttention) {
  EXPECT_EQ(cached_of_token(published_architecture("llama-2-7b")), 2 * 4096 * 32);
  EXPECT_EQ(cached_of_token(published_architecture("llama-3.1-8b")), 2 * 1024 * 32);
  EXPECT_EQ(cached_of_token(published_architecture("deepseek-v3")), 61 * (512 + 64));
  const auto sliding = [](const Architecture& model) {
    return std::ranges::count_if(model.order, [&](std::size_t kind) { return model.kinds[kind].attention.window > 0; });
  };
  EXPECT_EQ(sliding(published_architecture("gemma-2-9b")), 21);
  EXPECT_EQ(sliding(published_architecture("gemma-3-1b")), 22);  // of 26, every sixth is full
  EXPECT_EQ(sliding(published_architecture("gpt-oss-20b")), 12);
  EXPECT_EQ(sliding(published_architecture("mistral-7b-v0.1")), 32);
  EXPECT_EQ(sliding(published_architecture("qwen2-7b")), 0);
}

TEST(Architecture, QuantisedWeightsAreCountedAsStored) {
  Json json = published_config("llama-3.1-8b");
  const auto bits = [&](const Json& config) {
    json["quantization_config"] = config;
    const Architecture model = read_architecture(json, "config.json", "stored");
    EXPECT_EQ(model.stored_bits(model.first.front(), 16), 16);
    EXPECT_EQ(model.stored_bits(model.last.back(), 16), 16);
    return model.stored_bits(model.kinds.front().weights.front(), 16);
  };
  EXPECT_DOUBLE_EQ(bits({{"quant_method", "awq"}, {"bits", 4}, {"group_size", 128}}), 4 + 20.0 / 128);
  EXPECT_NEAR(bits({{"quant_method", "bitsandbytes"}, {"load_in_4bit", true}, {"bnb_4bit_use_double_quant", true}}),
              4.127, 5e-4);
  EXPECT_DOUBLE_EQ(bits({{"quant_method", "bitsandbytes"}, {"load_in_8bit", true}}), 8);
  EXPECT_DOUBLE_EQ(bits({{"quant_method", "compressed-tensors"},
                         {"config_groups", {{"group_0", {{"weights", {{"num_bits", 8}, {"group_size", nullptr}}}}}}}}),
                   8);
  EXPECT_DOUBLE_EQ(
      bits({{"quant_method", "gptq"}, {"bits", 4}, {"group_size", -1}, {"modules_to_not_convert", {"q_proj"}}}), 16);
  EXPECT_DOUBLE_EQ(bits({{"quant_method", "awq"}, {"modules_to_not_convert", {"model.layers.0.self_attn"}}}), 16);
  const Architecture oss = published_architecture("gpt-oss-20b");
  for (const Weight& weight : oss.layer(0).weights)
    EXPECT_EQ(oss.stored_bits(weight, 16), weight.part == Part::experts ? 4.25 : 16) << weight.name;
  json["quantization_config"] = {{"quant_method", "aqw"}};
  EXPECT_THAT(refused_config(json),
              AllOf(HasSubstr("/quantization_config/quant_method"), HasSubstr("\"aqw\""), HasSubstr("awq")));
}

TEST(Architecture, UnknownMembersAreNamed) {
  Json json = published_config("qwen3-4b");
  json["num_memory_tokens"] = 16;
  EXPECT_THAT(read_architecture(json, "config.json", "x").notes, Contains(HasSubstr("\"num_memory_tokens\"")));
}

TEST(Architecture, WhatCannotBeReadIsRefused) {
  EXPECT_THAT(refused_config({{"model_type", "qwen4"}, {"hidden_size", 8}}),
              AllOf(HasSubstr("config.json: /model_type"), HasSubstr("did you mean \"qwen"), HasSubstr("deepseek_v3")));
  EXPECT_THAT(refused_config({{"hidden_size", 8}}), HasSubstr("\"model_type\" is missing"));
  Json json = published_config("qwen3-30b-a3b");
  json["num_experts_per_tok"] = 200;
  EXPECT_THAT(refused_config(json), HasSubstr("cannot use 200 of 128 experts"));
  json.erase("moe_intermediate_size");
  EXPECT_THAT(refused_config(json), HasSubstr("\"moe_intermediate_size\" is missing"));
  json = published_config("llama-3.1-8b");
  json["num_key_value_heads"] = 7;
  EXPECT_THAT(refused_config(json), AllOf(HasSubstr("/num_key_value_heads"), HasSubstr("do not divide 32")));
  json["num_key_value_heads"] = "eight";
  EXPECT_FALSE(refused_config(json).empty());
}

}  // namespace
}  // namespace assay::architecture
