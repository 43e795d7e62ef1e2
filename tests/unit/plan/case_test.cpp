#include "harness/plan/case.h"

#include "harness/core/error.h"
#include "harness/json/json.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

Measurement measured(double median, std::optional<Interval> ci95) {
  Measurement measurement;
  measurement.values = {median};
  measurement.summary.median = median;
  measurement.summary.ci95 = ci95;
  return measurement;
}

TEST(Metrics, ARateInvertsTheIntervalOfTheTimes) {
  const Metric rate = rate_metric("bandwidth", 100, "B/s", measured(2, Interval{1, 4}));
  EXPECT_EQ(rate.name, "bandwidth");
  EXPECT_EQ(rate.unit, "B/s");
  EXPECT_EQ(rate.better, Better::higher);
  EXPECT_DOUBLE_EQ(*rate.value, 50);
  EXPECT_DOUBLE_EQ(rate.ci95->low, 25);
  EXPECT_DOUBLE_EQ(rate.ci95->high, 100);
  EXPECT_FALSE(rate_metric("x", 1, "1", measured(2, std::nullopt)).ci95);
}

TEST(Metrics, UnknownValuesAreAbsent) {
  EXPECT_FALSE(rate_metric("x", 1, "1", Measurement()).value);
  EXPECT_FALSE(rate_metric("x", 1, "1", measured(0, Interval{0, 1})).value);
  EXPECT_FALSE(rate_metric("x", 1, "1", measured(1, Interval{0, 2})).ci95);
  EXPECT_FALSE(time_metric("latency", Measurement()).value);
}

TEST(Metrics, LowerTimesAreBetter) {
  const Metric time = time_metric("latency", measured(2, Interval{1, 4}));
  EXPECT_DOUBLE_EQ(*time.value, 2);
  EXPECT_DOUBLE_EQ(time.ci95->low, 1);
  EXPECT_EQ(time.better, Better::lower);
  EXPECT_EQ(time.unit, "s");
}

TEST(Checks, NanFailsAndCulpritsAreLimited) {
  Checks checks;
  checks.at_most("a", 1, 1);
  checks.at_most("b", 1.1, 1);
  checks.at_most("c", std::nan(""), 1);
  checks.at_most("d", 1, std::nan(""));
  checks.that("e", false, std::vector<std::string>(30, "x"));
  checks.that("f", true);
  const std::vector<bool> passed = {true, false, false, false, false, true};
  ASSERT_EQ(checks.all().size(), passed.size());
  for (std::size_t i = 0; i < passed.size(); ++i) EXPECT_EQ(checks.all()[i].passed, passed[i]) << i;
  EXPECT_EQ(checks.all()[4].detail.size(), 20u);
  EXPECT_FALSE(checks.all()[4].value);
}

TEST(Params, KeepOrderAndTypes) {
  Params params;
  params.set("dtype", std::string("f32"));
  params.set("m", std::int64_t{4096});
  params.set("share", 0.1);
  params.set("on", true);
  params.set("m", std::int64_t{8});
  EXPECT_EQ(params.key("gemm"), "gemm/dtype=f32/m=8/share=0.1/on=true");
  EXPECT_EQ(params.to_json().dump(), R"({"dtype":"f32","m":8,"share":0.1,"on":true})");
  EXPECT_EQ(params.integer("m"), 8);
  EXPECT_DOUBLE_EQ(params.real("m"), 8);
  EXPECT_TRUE(params.flag("on"));
  EXPECT_FALSE(params.has("n"));
  EXPECT_THROW(params.integer("n"), Error);
  EXPECT_THROW(params.integer("dtype"), Error);
  EXPECT_THROW(params.text("m"), Error);
}

enum class Loop { copy, triad };
constexpr auto words(Loop) { return std::to_array<std::string_view>({"copy", "triad"}); }

TEST(Axis, DeclaresDefaultsLimitsAndDevices) {
  const ParamSpec loop = axis::choice<Loop>("loop").only(DeviceKind::cuda, {"triad"}).doc("which");
  EXPECT_EQ(loop.type, ParamType::choice);
  EXPECT_EQ(loop.allowed, (std::vector<std::string>{"copy", "triad"}));
  EXPECT_EQ(loop.defaults.size(), 2u);
  EXPECT_FALSE(loop.has(std::string("triad"), DeviceKind::cpu));
  EXPECT_EQ(loop.help, "which");
  const ParamSpec size = axis::bytes("bytes", {64}).runs_on_gpu({1 << 20}).range(8, 1e9).only(DeviceKind::cuda);
  EXPECT_EQ(size.defaults_on(DeviceKind::cpu).front(), ParamValue(std::int64_t{64}));
  EXPECT_EQ(size.defaults_on(DeviceKind::cuda).front(), ParamValue(std::int64_t{1 << 20}));
  EXPECT_EQ(size.minimum, 8);
  EXPECT_FALSE(size.has(DeviceKind::cpu));
  EXPECT_EQ(axis::count("threads", {"all"}).runs({2, "all"}).defaults.front(), ParamValue(std::int64_t{2}));
}

TEST(Params, ChoicesAreReadAsEnums) {
  Params params;
  params.set("loop", std::string("triad"));
  params.set("threads", std::int64_t{2});
  EXPECT_EQ(params.choice<Loop>("loop"), Loop::triad);
  EXPECT_EQ(word_of(Loop::copy), "copy");
  EXPECT_EQ(params.number("threads"), 2);
  EXPECT_EQ(params.number("loop"), std::nullopt);
  EXPECT_EQ(params.word("threads"), "2");
  EXPECT_EQ(params.word("absent"), "");
  params.set("loop", std::string("scale"));
  EXPECT_THROW(static_cast<void>(params.choice<Loop>("loop")), Error);
}

TEST(Faults, HaveNames) {
  for (int i = 0; i <= static_cast<int>(Fault::corrupt_image); ++i) {
    const auto fault = static_cast<Fault>(i);
    EXPECT_EQ(from_word<Fault>(name_of(fault)), fault);
  }
  EXPECT_EQ(name_of(Fault::slow_rank), "slow-rank");
  EXPECT_FALSE(from_word<Fault>("none"));
}

}  // namespace
}  // namespace assay
