// Layouts: which layers each stage has, bubbles, what is sent, and what cannot be.
#include "workloads/planning/layout.h"
#include "tests/support/published_models.h"
#include "workloads/planning/memory.h"
#include "workloads/planning/traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

namespace assay::planning {
namespace {

using architecture::Architecture;
using test::published_architecture;

std::vector<double> in_flight(const Step& step, const Layout& layout) {
  std::vector<double> all;
  for (const Stage& stage : stages_of(published_architecture("llama-3.1-8b"), step, layout))
    all.push_back(stage.in_flight);
  return all;
}

TEST(PlannedLayout, StagesHaveAllLayersOnce) {
  const Architecture deepseek = published_architecture("deepseek-v3");
  const std::vector<Stage> stages = stages_of(deepseek, {.accumulate = 8}, {.pp = 4, .chunks = 2});
  std::vector<std::int64_t> sum(deepseek.kinds.size(), 0);
  for (const Stage& stage : stages)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += stage.layers[i];
  EXPECT_EQ(sum, (std::vector<std::int64_t>{58, 3}));  // of experts, and dense
  EXPECT_EQ(stages.front().layers[1], 3);              // the dense ones are the first
  EXPECT_TRUE(stages.front().first && stages.back().last && !stages[1].first && !stages[1].last);
}

TEST(PlannedLayout, MicroBatchesInFlightAreThoseOfTheSchedules) {
  EXPECT_EQ(in_flight({.accumulate = 8}, {.pp = 4}), (std::vector<double>{4, 3, 2, 1}));
  EXPECT_EQ(in_flight({.accumulate = 2}, {.pp = 4}), (std::vector<double>{2, 2, 2, 1}));
  // min(m v, 2 (p - 1 - r) + (v - 1) p + 1) slots of half a stage.
  EXPECT_EQ(in_flight({.accumulate = 8}, {.pp = 4, .chunks = 2}), (std::vector<double>{5.5, 4.5, 3.5, 2.5}));
}

TEST(PlannedLayout, BubblesAreTheFormulas) {
  EXPECT_EQ(bubble_of({.accumulate = 8}, {}), 0);
  EXPECT_DOUBLE_EQ(bubble_of({.accumulate = 8}, {.pp = 4}), 3.0 / 11);
  EXPECT_NEAR(bubble_of({.accumulate = 8}, {.pp = 4, .chunks = 2}), 0.158, 5e-4);
}

TEST(PlannedLayout, GroupsSendWhatTheirCollectivesDo) {
  const Architecture llama = published_architecture("llama-3.1-8b");
  const double rows = 2.0 * 4096 * 4096, layers = 32, parameters = 8030261248;
  const auto sent = [&](const Step& step, const Layout& layout) {
    std::map<std::string, double> bytes;
    for (const Traffic& each : traffic_of(llama, step, layout, 8)) bytes[each.group] = each.bytes;
    return bytes;
  };
  const Step step{.seq = 4096};
  EXPECT_TRUE(sent(step, {}).empty());
  EXPECT_DOUBLE_EQ(sent(step, {.tp = 4})["tp"], layers * 4 * 2 * 3 / 4 * rows);
  EXPECT_DOUBLE_EQ(sent(step, {.tp = 4, .sp = true})["tp"], layers * 10 * 3 / 4 * rows);
  EXPECT_DOUBLE_EQ(sent(step, {.dp = 4})["dp"], 2 * 3.0 / 4 * 4 * parameters);
  EXPECT_DOUBLE_EQ(sent(step, {.dp = 4, .zero = 2})["dp"], 3.0 / 4 * 6 * parameters);
  EXPECT_DOUBLE_EQ(sent(step, {.dp = 4, .zero = 3})["dp"], 3.0 / 4 * 8 * parameters);
  EXPECT_DOUBLE_EQ(sent({.seq = 4096, .accumulate = 4}, {.pp = 2})["pp"], 2 * 4 * rows);
  EXPECT_DOUBLE_EQ(sent(step, {.cp = 2})["cp"], layers * 3 * 2 * 1024 * 2.0 * 2048);
  const std::vector<Traffic> all = traffic_of(llama, step, {.dp = 8, .tp = 4, .pp = 2}, 8);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_TRUE(all[0].within_host);
  EXPECT_FALSE(all[1].within_host || all[2].within_host);
  const Architecture mixtral = published_architecture("mixtral-8x7b");
  for (const Traffic& each : traffic_of(mixtral, step, {.dp = 8, .ep = 8}, 8))
    if (each.group == "ep") {
      EXPECT_DOUBLE_EQ(each.bytes, 32 * 4 * 7.0 / 8 * 2 * rows);
    }
}

TEST(PlannedLayout, TensorParallelismDividesMatrices) {
  const Architecture llama = published_architecture("llama-3.1-70b");
  const Step step{.seq = 4096};
  const Terms one = memory_of(llama, step, {}, 0).front().terms,
              eight = memory_of(llama, step, {.tp = 8}, 0).front().terms;
  const Terms sequence = memory_of(llama, step, {.tp = 8, .sp = true}, 0).front().terms;
  EXPECT_NEAR(eight.weights, one.weights / 8, 1e-3 * one.weights);
  EXPECT_GT(eight.activations, one.activations / 4);  // norms are not divided
  EXPECT_NEAR(sequence.activations, one.activations / 8, 0.01 * one.activations);
}

TEST(PlannedLayout, WhatCannotBeNamesTheNearest) {
  const Architecture llama = published_architecture("llama-3.1-8b"), mixtral = published_architecture("mixtral-8x7b");
  const auto refused = [](const Architecture& model, const Layout& layout, const Step& step = {.seq = 4096}) {
    return problem_of(model, step, layout).value_or("");
  };
  using testing::AllOf;
  using testing::HasSubstr;
  EXPECT_EQ(refused(llama, {.dp = 2, .tp = 8, .sp = true, .pp = 4, .cp = 2, .zero = 1}), "");
  EXPECT_THAT(refused(llama, {.tp = 16}), AllOf(HasSubstr("tp=16"), HasSubstr("use tp=8")));
  EXPECT_THAT(refused(llama, {.tp = 3}), HasSubstr("use tp=2"));
  EXPECT_THAT(refused(llama, {.sp = true}), HasSubstr("sp=true"));
  EXPECT_THAT(refused(llama, {.tp = 2, .sp = true}, {.seq = 4095}), HasSubstr("use seq=4094"));
  EXPECT_THAT(refused(llama, {.pp = 33}), HasSubstr("use pp=32,chunks=1"));
  EXPECT_THAT(refused(llama, {.chunks = 2}), HasSubstr("use chunks=1, or pp=2"));
  EXPECT_THAT(refused(llama, {.pp = 4, .chunks = 2}, {.seq = 4096, .accumulate = 6}), HasSubstr("use accumulate=8"));
  EXPECT_THAT(refused(llama, {.pp = 2, .zero = 3}), HasSubstr("use zero=1"));
  EXPECT_THAT(refused(llama, {.zero = 4}), HasSubstr("use zero=3"));
  EXPECT_THAT(refused(llama, {.dp = 2, .ep = 2}), HasSubstr("use ep=1"));
  EXPECT_THAT(refused(mixtral, {.dp = 4, .ep = 8}), AllOf(HasSubstr("use ep=4"), HasSubstr("dp=8")));
  EXPECT_THAT(refused(llama, {.cp = 3}), HasSubstr("use cp=2"));
  EXPECT_THAT(refused(llama, {.dp = 0}), HasSubstr("from 1 to 16384"));
  EXPECT_THAT(refused(llama, {.dp = 16384, .tp = 8, .pp = 32}), HasSubstr("use dp=4096"));
}

}  // namespace
}  // namespace assay::planning
