// Sides that are functions: what assay ab and other callers get from ab::run().
#include "harness/ab/ab.h"

#include "harness/core/error.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>
#include <thread>
#include <vector>

namespace assay::ab {
namespace {

Side constant(double value, Better better = Better::lower) {
  return [=](Clock::time_point) { return std::vector<Figure>{{"x", value, "s", better}}; };
}

TEST(Ab, SaysWhichSideIsFasterWhicheverWayTheFigureCounts) {
  EXPECT_EQ(run(constant(1), constant(1.1), {}).all.verdict, Direction::slower);
  EXPECT_EQ(run(constant(1.1), constant(1), {}).all.verdict, Direction::faster);
  EXPECT_EQ(run(constant(1), constant(1.01), {}).all.verdict, Direction::same);
  EXPECT_EQ(run(constant(1), constant(1.01), {.tolerance = 0.001}).all.verdict, Direction::slower);
  const Result rate = run(constant(100, Better::higher), constant(110, Better::higher), {});
  EXPECT_EQ(rate.all.verdict, Direction::faster);
  EXPECT_NEAR(rate.all.ratio, 1.1, 1e-12);
  EXPECT_GT(rate.all.low, 1);
  EXPECT_GE(rate.all.high, 1.1);
  EXPECT_EQ(rate.ended, Ended::decided);
  ASSERT_EQ(rate.cases.size(), 1u);
  EXPECT_EQ(rate.cases[0].a, 100);
  EXPECT_EQ(rate.cases[0].b, 110);
  EXPECT_NEAR(run(constant(1), constant(2), {}).all.ratio, 0.5, 1e-12);
}

TEST(Ab, SidesTakeTurnsInRandomOrderAfterOneWarmUpEach) {
  std::string order;
  double noise = 0.3;
  const auto side = [&](char name) {
    return [&, name](Clock::time_point) {
      order += name;
      return std::vector<Figure>{{"x", 1 + (noise = -noise)}};
    };
  };
  const Options options{.budget = 0.2, .seed = 7};
  run(side('A'), side('B'), options);
  ASSERT_GT(order.size(), 40u);
  EXPECT_EQ(order.substr(0, 2), "AB");
  int a_first = 0;
  for (std::size_t pair = 1; pair < 20; ++pair) {
    const std::string both = order.substr(2 * pair, 2);
    EXPECT_TRUE(both == "AB" || both == "BA") << both;
    a_first += both == "AB";
  }
  EXPECT_GT(a_first, 3);
  EXPECT_LT(a_first, 16);
  const std::string first = order.substr(0, 40);
  order.clear();
  noise = 0.3;
  run(side('A'), side('B'), options);
  EXPECT_EQ(order.substr(0, 40), first);
  order.clear();
  run(side('A'), side('B'), {.budget = 0.2, .seed = 8});
  EXPECT_NE(order.substr(0, 40), first);
}

// Case k of B takes `factors[k]` times as long as A's, with this noise.
Result simulate(const std::vector<double>& factors, std::uint64_t seed, double noise = 0.03) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const auto side = [&](bool b) {
    return [&, b](Clock::time_point) {
      std::vector<Figure> figures;
      for (std::size_t k = 0; k < factors.size(); ++k)
        figures.push_back({std::to_string(k), (b ? factors[k] : 1) * std::exp(noise * normal(random))});
      return figures;
    };
  };
  return run(side(false), side(true), {.tolerance = 0.05, .seed = seed});
}

TEST(Ab, EveryCaseGetsItsDirection) {
  const Result result = simulate({1, 1.2, 1, 0.8}, 1);
  std::vector<Direction> verdicts;
  for (const Case& one : result.cases) {
    verdicts.push_back(one.outcome.verdict);
    EXPECT_LE(one.outcome.pairs, result.all.pairs);
    EXPECT_LE(one.outcome.low, one.outcome.ratio);
    EXPECT_GE(one.outcome.high, one.outcome.ratio);
  }
  EXPECT_THAT(verdicts, testing::ElementsAre(Direction::same, Direction::slower, Direction::same, Direction::faster));
  EXPECT_EQ(result.all.verdict, Direction::slower);
  EXPECT_NEAR(result.all.ratio, std::pow(1 / 1.2 / 0.8, 0.25), 0.03);
  EXPECT_EQ(simulate({1, 0.8}, 1).all.verdict, Direction::faster);
  EXPECT_EQ(simulate({1, 1}, 1).all.verdict, Direction::same);
}

// At 5 % for each, half of the comparisons of twenty equal cases would call something changed.
TEST(Ab, ManyCasesShareOneErrorRate) {
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed)
    wrong += simulate(std::vector<double>(20, 1.0), seed, 0.08).all.verdict != Direction::same;
  EXPECT_LE(wrong, 5);
}

TEST(Ab, CasesOfOneSideAreNamed) {
  const auto side = [](std::vector<Figure> figures) { return [=](Clock::time_point) { return figures; }; };
  const Result result = run(side({{"x", 1}, {"only a", 1}}), side({{"only b", 1}, {"x", 1}}), {});
  EXPECT_THAT(result.one_sided, testing::ElementsAre("only a", "only b"));
  EXPECT_EQ(result.cases.size(), 1u);
  EXPECT_EQ(result.all.verdict, Direction::same);
}

TEST(Ab, EndsWithTheBudgetOrAnInterruption) {
  const Side sleeps = [](Clock::time_point) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return std::vector<Figure>{{"x", 1}};
  };
  const Result few = run(sleeps, sleeps, {.budget = 0.1});
  EXPECT_EQ(few.all.verdict, Direction::unknown);
  EXPECT_EQ(few.ended, Ended::budget);
  EXPECT_LT(few.all.pairs, 4u);
  const Side late = [](Clock::time_point deadline) {
    std::this_thread::sleep_until(deadline);
    return std::vector<Figure>{};
  };
  const Result none = run(late, late, {.budget = 0.01});
  EXPECT_EQ(none.all.verdict, Direction::unknown);
  EXPECT_EQ(none.ended, Ended::budget);
  EXPECT_EQ(none.all.pairs, 0u);
  EXPECT_TRUE(none.cases.empty());
  int runs = 0;
  const Side interrupted = [&](Clock::time_point) {
    return ++runs < 6 ? std::vector<Figure>{{"x", 1}} : std::vector<Figure>{};
  };
  const Result stopped = run(interrupted, interrupted, {});
  EXPECT_EQ(stopped.ended, Ended::interrupted);
  EXPECT_EQ(stopped.all.pairs, 1u);
  EXPECT_EQ(stopped.all.verdict, Direction::unknown);
}

TEST(Ab, RefusesWhatCannotBeCompared) {
  const auto side = [](std::vector<Figure> figures) { return [=](Clock::time_point) { return figures; }; };
  EXPECT_THROW(run(constant(1), constant(1), {.tolerance = 0}), UsageError);
  EXPECT_THROW(run(constant(1), constant(1), {.tolerance = 1}), UsageError);
  EXPECT_THROW(run(constant(1), constant(1), {.error = 0}), UsageError);
  EXPECT_THROW(run(constant(1), constant(1), {.budget = 0}), UsageError);
  EXPECT_THROW(run(constant(0), constant(1), {}), UsageError);
  EXPECT_THROW(run(constant(1), constant(-1), {}), UsageError);
  EXPECT_THROW(run(constant(1), constant(INFINITY), {}), UsageError);
  EXPECT_THROW(run(side({{"x", 1}}), side({{"y", 1}}), {}), UsageError);
  EXPECT_THROW(run(side({{"x", 1, "s"}}), side({{"x", 1, "B"}}), {}), UsageError);
  EXPECT_THROW(run(side({{"x", 1, "s"}, {"x", 1, "B"}}), side({{"x", 1, "s"}}), {}), UsageError);
  EXPECT_THROW(run(constant(1), constant(1, Better::higher), {}), UsageError);
  // After the warm-up, it is no longer the request that is wrong.
  int runs = 0;
  const Side loses = [&](Clock::time_point) { return std::vector<Figure>{{++runs < 4 ? "x" : "y", 1}}; };
  try {
    run(loses, loses, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::broken);
    EXPECT_THAT(error.what(), testing::HasSubstr("\"x\""));
  }
}

}  // namespace
}  // namespace assay::ab
