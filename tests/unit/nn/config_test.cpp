// Configurations: published parameter counts and costs, and errors with their location.
#include "harness/core/error.h"
#include "harness/json/json.h"
#include "tests/support/refusal.h"
#include "tests/unit/nn/shipped_models.h"
#include "tests/unit/nn/small_models.h"
#include "workloads/nn/step_plan.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::nn {
namespace {

std::int64_t parameters_of(const std::string& name) {
  std::int64_t count = 0;
  for (const ParameterSpec& spec : test::shipped(name)->parameters()) count += spec.count();
  return count;
}

TEST(Configs, HaveThePublishedParameterCounts) {
  EXPECT_EQ(parameters_of("resnet18"), 11689512);
  EXPECT_EQ(parameters_of("resnet50"), 25557032);
  EXPECT_EQ(parameters_of("gpt2-124m"), 124439808);
  EXPECT_EQ(parameters_of("gpt2-355m"), 354823168);
  EXPECT_EQ(parameters_of("bert-large"), 335174458);
  EXPECT_EQ(parameters_of("llama-160m"), 162417408);
  EXPECT_EQ(parameters_of("llama-1b"), 1235814400);
  EXPECT_EQ(parameters_of("llama-8b"), 8030261248);
}

TEST(Configs, EveryFileStatesItsParameterCount) {
  int files = 0;
  for (const auto& file : test::shipped_files()) {
    const std::string name = file.stem().string();
    EXPECT_EQ(read_json(file)["parameters"].get<std::int64_t>(), parameters_of(name)) << name;
    ++files;
  }
  EXPECT_GE(files, 11);
}

TEST(Configs, CostsFollowTheRule) {
  const ModelCost resnet = test::shipped("resnet50")->cost({});
  EXPECT_NEAR(resnet.forward / 2e9, 4.09, 0.005);
  EXPECT_DOUBLE_EQ(resnet.training, 3 * resnet.forward - 2.0 * 112 * 112 * 64 * 7 * 7 * 3);
  const ModelCost gpt2 = test::shipped("gpt2-124m")->cost({.samples = 1, .seq = 1024});
  const double weights = 12 * 12.0 * 768 * 768 + 50257.0 * 768;
  EXPECT_DOUBLE_EQ(gpt2.training, 1024 * (6 * weights + 6.0 * 12 * 768 * 1024));
  EXPECT_DOUBLE_EQ(gpt2.training_full_attention, 1024 * (6 * weights + 12.0 * 12 * 768 * 1024));
}

TEST(Configs, LlamaScalingChangesLowFrequenciesOnly) {
  const std::string path = ASSAY_SOURCE "/configs/models/llama-1b.json";
  const auto config = transformer::read_config(read_json(path), path, "llama-1b");
  EXPECT_DOUBLE_EQ(transformer::rotary_frequency(config, 0), 1.0);
  const double slowest = std::pow(500000.0, -62.0 / 64.0);
  EXPECT_DOUBLE_EQ(transformer::rotary_frequency(config, 31), slowest / 32);
  const double between = transformer::rotary_frequency(config, 16), plain = std::pow(500000.0, -32.0 / 64.0);
  EXPECT_LT(between, plain);
  EXPECT_GT(between, plain / 32);
}

TEST(Configs, MemoryIsPlannedWithoutAllocatingIt) {
  StepOptions options;
  options.precision = precision_from("bf16");
  options.batch = {.samples = 1, .seq = 8192};
  options.checkpointing = Checkpointing::full;
  const MemoryPlan plan = plan_memory(*test::shipped("llama-8b"), options);
  EXPECT_GE(plan.gradients, 4 * 8030261248ull);
  EXPECT_EQ(plan.optimizer, 2 * plan.gradients);
  EXPECT_GT(plan.activations, 32ull * 8192 * 4096 * 2);
  EXPECT_LT(plan.activations, 4 * 32ull * 8192 * 4096 * 2);
}

Json good() {
  return Json{{"schema", 1},   {"family", "llama"},    {"vocabulary", 32},   {"positions", 16},
              {"layers", 1},   {"width", 12},          {"heads", 3},         {"mlp_width", 8},
              {"norm", "rms"}, {"position", "rotary"}, {"mlp", "silu_gate"}, {"bias", false}};
}

std::string message(const std::function<void(Json&)>& change) {
  Json json = good();
  change(json);
  return assay::test::refusal([&] { transformer::read_config(json, "bad.json", "bad"); });
}

TEST(Configs, ImpossibleShapesAreReportedWithTheirLocation) {
  EXPECT_EQ(message([](Json&) {}), "");
  EXPECT_EQ(message([](Json& j) { j["heads"] = 5; }), "bad.json: /heads: 5 heads do not divide the width 12");
  EXPECT_EQ(message([](Json& j) { j["kv_heads"] = 2; }),
            "bad.json: /kv_heads: 2 key and value heads do not divide 3 heads");
  EXPECT_NE(message([](Json& j) { j["head_dim"] = 5; }).find("bad.json: /head_dim: "), std::string::npos);
  EXPECT_NE(message([](Json& j) { j["haeds"] = 5; }).find("did you mean \"heads\""), std::string::npos);
  EXPECT_NE(message([](Json& j) { j["norm"] = "layr"; }).find("bad.json: /norm: "), std::string::npos);
  EXPECT_NE(message([](Json& j) { j.erase("layers"); }).find("layers"), std::string::npos);
  for (const char* optional : {"head_dim", "kv_heads", "bias"})
    EXPECT_NE(message([&](Json& j) { j[optional] = nullptr; }).find(std::string("bad.json: /") + optional),
              std::string::npos);
  EXPECT_NE(message([](Json& j) { j["rotary"]["bass"] = 1; }).find("/rotary"), std::string::npos);
}

TEST(Configs, ImpossibleImagesAreRejected) {
  Json json{{"schema", 1}, {"family", "resnet"}, {"block", "bottleneck"}, {"stages", {1, 1, 1, 1}}, {"image", 16}};
  EXPECT_THROW(resnet::read_config(json, "bad.json", "bad"), UsageError);
  json["image"] = 32;
  EXPECT_EQ(resnet::read_config(json, "good.json", "good").image, 32);
  json["groups"] = 7;
  EXPECT_THROW(resnet::read_config(json, "bad.json", "bad"), UsageError);
}

}  // namespace
}  // namespace assay::nn
