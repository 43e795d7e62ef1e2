// Memory planned for hardware: what fits, what would, and the layouts that a search finds.
#include "harness/core/error.h"
#include "harness/json/json.h"
#include "tests/support/refusal.h"
#include "workloads/estimate/document.h"
#include "workloads/estimate/layout_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::estimate {
namespace {

// Below 4 GiB the plan of a step does not depend on the memory: blocks of logits have their least size.
constexpr std::uint64_t small_gpu = std::uint64_t{3} << 30;

HardwareSheet gpu_with(std::optional<std::uint64_t> memory_bytes) {
  HardwareSheet sheet;
  sheet.name = "made-up";
  sheet.kind = "gpu";
  sheet.peak = {{"bf16", 1e14}};
  sheet.memory_bytes = memory_bytes;
  return sheet;
}

MemoryEstimator estimator_on(std::optional<std::uint64_t> memory_bytes, const std::vector<std::string>& sets) {
  MemoryEstimator made("gpt2-tiny");
  made.set_hardware(gpu_with(memory_bytes));
  made.set(sets);
  return made;
}

TEST(Answer, FitsToTheByte) {
  const std::vector<std::string> sets = {"micro_batch=4,seq=64,precision=bf16"};
  const std::uint64_t needed = estimator_on(small_gpu, sets).estimate().total();
  const MemoryEstimator exact = estimator_on(needed, sets), less = estimator_on(needed - 1, sets);
  const Answer fits(exact), does_not(less);
  EXPECT_EQ(fits.code(), ExitCode::ok);
  EXPECT_EQ(to_json(fits)["short_by_bytes"], 0);
  EXPECT_EQ(does_not.code(), ExitCode::failed);
  EXPECT_EQ(to_json(does_not)["short_by_bytes"], 1);
  ASSERT_FALSE(does_not.others.empty());
  EXPECT_THAT(to_text(does_not), testing::HasSubstr("  would fit: --set " + does_not.others.front().set));
  for (const Alternative& other : does_not.others) EXPECT_LE(other.estimate.total(), needed - 1) << other.set;
}

TEST(Answer, WithoutMemoryOrHardwareNothingIsJudged) {
  const MemoryEstimator unknown = estimator_on(std::nullopt, {});
  EXPECT_EQ(Answer(unknown).code(), ExitCode::no_data);
  EXPECT_THAT(to_text(Answer(unknown)), testing::HasSubstr("its sheet has no memory_bytes"));
  const MemoryEstimator none("gpt2-tiny");
  EXPECT_EQ(Answer(none).code(), ExitCode::ok);
  EXPECT_TRUE(to_json(Answer(none))["hardware"].is_null());
}

TEST(Answer, HasARankForEachOfTheLayout) {
  const MemoryEstimator estimator = estimator_on(std::uint64_t{1} << 40, {"dp=3,zero=1,precision=bf16"});
  const Json json = to_json(Answer(estimator));
  EXPECT_EQ(json["layout"].dump(), R"({"dp":3,"tp":1,"pp":1,"zero":1})");
  ASSERT_EQ(json["ranks"].size(), 3u);
  std::uint64_t sum = 0;
  for (const auto& [name, bytes] : json["ranks"][2]["terms"].items()) sum += bytes.get<std::uint64_t>();
  EXPECT_EQ(sum, json["total_bytes"].get<std::uint64_t>());
}

TEST(MemoryEstimator, RefusesWhatTheHardwareCannotDo) {
  MemoryEstimator estimator("gpt2-tiny");
  estimator.set_hardware(gpu_with(std::uint64_t{1} << 34));
  EXPECT_THAT(test::refusal([&] { estimator.set({"precision=fp8"}); }),
              testing::HasSubstr("made-up does not multiply in 8 bits"));
  HardwareSheet cpu = gpu_with(std::nullopt);
  cpu.kind = "cpu";
  estimator.set_hardware(cpu);
  EXPECT_THAT(test::refusal([&] { estimator.set({"precision=fp16"}); }), testing::HasSubstr("made-up is a CPU"));
  EXPECT_THAT(test::refusal([&] { estimator.set({"precision=f32,precision=bf16"}); }),
              testing::HasSubstr("precision is set twice"));
}

TEST(LayoutSearch, TheLargestMicroBatchThatFits) {
  LayoutSearch search("gpt2-tiny", {"seq=64"}, {1, 2});
  const parallel::Held roomy = search.on(gpu_with(small_gpu), 1);
  ASSERT_TRUE(roomy.fits);
  EXPECT_EQ(roomy.checkpointing, "none");
  EXPECT_EQ(roomy.work.precision, "bf16");
  EXPECT_EQ(roomy.work.items, static_cast<double>(roomy.micro_batch * roomy.accumulate * 64));
  EXPECT_EQ(roomy.work.exchanged, 0);  // alone
  // With just too little memory for that step the search takes the next smaller batch.
  const parallel::Held tighter = search.on(gpu_with(roomy.total_bytes - 1), 1);
  ASSERT_TRUE(tighter.fits);
  EXPECT_EQ(tighter.micro_batch, roomy.micro_batch / 2);
  EXPECT_LT(tighter.total_bytes, roomy.total_bytes);
}

TEST(LayoutSearch, WhatFitsNowhereIsTheSmallestStep) {
  LayoutSearch search("gpt2-tiny", {"seq=64"}, {1});
  const HardwareSheet tiny = gpu_with(1024);
  const parallel::Held held = search.on(tiny, 1);
  EXPECT_FALSE(held.fits);
  EXPECT_EQ(held.micro_batch, 1);
  EXPECT_FALSE(search.fewest_above(tiny, 1));
}

TEST(Models, ListingAndText) {
  const Json json = model_json({"gpt2-tiny", "a model", configs_dir() / "models" / "gpt2-tiny.json"});
  EXPECT_EQ(json["name"], "gpt2-tiny");
  EXPECT_EQ(json["flops"]["per"], "token");
  EXPECT_THAT(model_text(json), testing::HasSubstr("    parameters   "));
  EXPECT_THAT(model_text({{"name", "bad"}, {"reason", "why"}}), testing::HasSubstr("not a model: why"));
}

}  // namespace
}  // namespace assay::estimate
