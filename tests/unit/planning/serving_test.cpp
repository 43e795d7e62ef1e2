// Memory of serving: what is known of Llama-2-7B, caches of several kinds of attention, refusals.
#include "workloads/planning/serving.h"
#include "tests/support/published_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::planning {
namespace {

using test::published_architecture;

constexpr double gib = 1024.0 * 1024 * 1024;

// What guides to serving say of it at batch 1 and 4,096 tokens.
TEST(ServingMemory, Llama7BNeedsWhatIsKnown) {
  const architecture::Architecture llama = published_architecture("llama-2-7b");
  const auto total = [&](WeightFormat weights) {
    return memory_of(llama, {.context = 4096, .weights = weights}).total() / gib;
  };
  EXPECT_THAT(total(WeightFormat::fp16), testing::AllOf(testing::Ge(14), testing::Le(16)));
  EXPECT_THAT(total(WeightFormat::int8), testing::AllOf(testing::Ge(8), testing::Le(10)));
  for (const WeightFormat four_bits : {WeightFormat::int4, WeightFormat::nf4})
    EXPECT_THAT(total(four_bits), testing::AllOf(testing::Ge(5), testing::Le(6)));
}

TEST(ServingMemory, CachesAreOfTheAttention) {
  const auto cache = [](const char* name, Serving serving) {
    return memory_of(published_architecture(name), serving).cache;
  };
  EXPECT_EQ(cache("llama-2-7b", {.context = 4096}), 2.0 * 2 * 4096 * 4096 * 32);
  EXPECT_EQ(cache("llama-3.1-8b", {.context = 8192, .concurrency = 32}), 32.0 * 2 * 2 * 1024 * 8192 * 32);
  EXPECT_EQ(cache("llama-3.1-8b", {.context = 8192, .cache = CacheFormat::fp8}), 2.0 * 1024 * 8192 * 32);
  EXPECT_EQ(cache("llama-3.1-8b", {.context = 8192, .tp = 16}),
            2.0 * 2 * 128 * 8192 * 32);                                                // each of 16 has one of 8 heads
  EXPECT_EQ(cache("deepseek-v3", {.context = 4096, .tp = 8}), 2.0 * 576 * 4096 * 61);  // latents are of all heads
  EXPECT_EQ(cache("mistral-7b-v0.1", {.context = 16384}), 2.0 * 2 * 1024 * 4096 * 32);
  EXPECT_EQ(cache("gpt-oss-20b", {.context = 4096}), 2.0 * 2 * 512 * (12 * 4096 + 12 * 128));
}

TEST(ServingMemory, WeightsAreAsStored) {
  const auto weights = [](const char* name) {
    return memory_of(published_architecture(name), {.context = 1024}).weights;
  };
  EXPECT_EQ(weights("qwen3-8b"), 2 * 8190735360.0);
  EXPECT_NEAR(weights("gpt-oss-20b"), 13.76e9, 0.05e9);     // the size of the published files
  EXPECT_NEAR(weights("deepseek-v3"), 671e9 + 1.9e9, 3e9);  // one byte each, embeddings and head two
}

TEST(ServingMemory, MostSequencesFitToTheLast) {
  const architecture::Architecture llama = published_architecture("llama-3.1-8b");
  Serving serving{.context = 8192};
  const std::int64_t most = max_sequences(llama, serving, 40e9);
  ASSERT_GT(most, 1);
  serving.concurrency = most;
  EXPECT_LE(memory_of(llama, serving).total(), 40e9);
  ++serving.concurrency;
  EXPECT_GT(memory_of(llama, serving).total(), 40e9);
  EXPECT_EQ(max_sequences(llama, serving, 1e9), 0);
}

TEST(ServingMemory, WhatWouldFitDoes) {
  const architecture::Architecture llama = published_architecture("llama-3.1-70b");
  const Device gpu{.bytes = 80e9, .alone = 1e9, .together = 2e9};
  const auto found = nearest_that_fit(llama, {.context = 8192, .concurrency = 8}, gpu);
  std::vector<std::string> flags;
  for (const auto& [name, serving] : found) {
    flags.push_back(name);
    EXPECT_LE(memory_of(llama, serving).total(), gpu.left(serving.tp)) << name;
  }
  EXPECT_EQ(flags, (std::vector<std::string>{"--set weights=int4", "--set tp=4"}));
  const auto smaller =
      nearest_that_fit(published_architecture("llama-3.1-8b"), {.context = 8192, .concurrency = 60}, gpu);
  ASSERT_EQ(smaller.size(), 4u);
  EXPECT_EQ(smaller[1].first, "--kv-dtype fp8");
}

TEST(ServingMemory, WhatCannotBeServedIsRefused) {
  EXPECT_THAT(problem_of(published_architecture("bert-base-uncased"), {.context = 128}).value_or(""),
              testing::HasSubstr("encoder"));
  EXPECT_THAT(problem_of(published_architecture("llama-2-7b"), {.context = 8192}).value_or(""),
              testing::HasSubstr("--context 4096"));
  EXPECT_THAT(problem_of(published_architecture("llama-2-7b"), {.context = 64, .tp = 5}).value_or(""),
              testing::HasSubstr("use tp=4"));
}

}  // namespace
}  // namespace assay::planning
