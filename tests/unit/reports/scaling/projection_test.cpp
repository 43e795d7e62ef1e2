// Projections to world sizes that were not measured: known answers, and how often their ranges contain the truth.
#include "reports/scaling/priced.h"

#include "harness/json/json.h"
#include "reports/scaling/amdahl.h"
#include "tests/unit/reports/scaling/records.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

namespace assay::report::scaling {
namespace {

TEST(Projection, ByHand) {
  const Series series = series_of(Mode::strong, {1, 2, 4, 8}, amdahl_time);
  const std::vector<int> sizes = {4, 16, 64, 128};
  const auto made = project(series, sizes);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->model, "compute / N + serial");
  EXPECT_EQ(made->held_out, 8);
  EXPECT_NEAR(made->error, 0, 1e-6);
  ASSERT_EQ(made->sizes.size(), 4u);
  EXPECT_TRUE(made->sizes[0].measured);
  EXPECT_DOUBLE_EQ(made->sizes[0].time->value, 4);
  EXPECT_NEAR(made->sizes[1].time->value, 2.5, 1e-6);
  EXPECT_NEAR(made->sizes[1].efficiency.value, 0.25, 1e-6);
  EXPECT_FALSE(made->sizes[2].extrapolated);  // 8 times the largest
  EXPECT_TRUE(made->sizes[3].extrapolated);
  EXPECT_FALSE(made->sizes[3].assumption.empty());
}

TEST(Projection, AConstantStepStaysConstant) {
  const std::vector<int> sizes = {16, 32};
  const auto made = project(series_of(Mode::weak, {1, 2, 4, 8}, [](double) { return 0.5; }), sizes);
  EXPECT_EQ(made->model, "compute");
  EXPECT_NEAR(made->sizes[1].time->value, 0.5, 1e-9);
  EXPECT_NEAR(made->sizes[1].efficiency.value, 1, 1e-9);
  EXPECT_NEAR(made->at(5), 0.5, 1e-9);
}

// Weak scaling that keeps 99 %, with a step that is 2 % too short at 4 ranks: what the models would make of it is more
// than linear.
TEST(Projection, NoEfficiencyIsAboveTheBestThatWasMeasured) {
  const std::vector<int> sizes = {2, 16, 64, 512};
  const auto weak = [](double shortest) {
    return [shortest](double n) { return n == 1 ? 1.0 : n == 4 ? shortest : 1.01; };
  };
  for (const Mode mode : {Mode::weak, Mode::strong})
    for (const double shortest : {0.99, 1.0, 0.9}) {
      const auto time = [&](double n) { return weak(shortest)(n) / (mode == Mode::strong ? n : 1); };
      const auto made = project(series_of(mode, {1, 2, 4}, time, 1.01), sizes);
      ASSERT_TRUE(made);
      const double best = std::max(1.0, 1 / shortest);
      for (const Projected& size : made->sizes) {
        if (!size.time || size.measured) continue;
        EXPECT_LE(size.efficiency.value, best + 1e-12);
        EXPECT_LE(size.efficiency.interval->high, best + 1e-12);
        EXPECT_LE(size.time->interval->low, size.time->value);
        EXPECT_LE(size.time->value, size.time->interval->high);
        const double linear = (mode == Mode::strong ? 1.0 / size.ranks : 1) / best;
        EXPECT_GE(size.time->value, linear - 1e-12);
        EXPECT_GE(size.time->interval->low, linear / 1.01 - 1e-12);
      }
    }
}

TEST(Amdahl, DoesNotApplyWhereMoreRanksAreSlower) {
  const auto fit = [](std::vector<int> ranks, const std::function<double(double)>& time, double arm = 1.01) {
    return fit_amdahl(series_of(Mode::strong, ranks, time, arm)).value();
  };
  EXPECT_TRUE(fit({1, 2, 4, 8}, amdahl_time).applies);
  EXPECT_FALSE(fit(
                   {1, 2}, [](double n) { return n == 1 ? 1.46e-3 : 16.3e-3; }, 1)
                   .applies);
  EXPECT_FALSE(fit({1, 2, 4}, [](double n) { return n == 4 ? 7.0 : amdahl_time(n); }).applies);
  // Within the figures' intervals it is not slower.
  EXPECT_TRUE(fit(
                  {1, 2, 4}, [](double n) { return n == 4 ? 6.05 : amdahl_time(n); }, 1.05)
                  .applies);
}

// 4.0 s is measured where the smaller sizes say 3.0 s: the miss of 1 s doubles from 8 to 12 ranks.
TEST(Projection, TheErrorAtTheLargestSizeWidensTheRange) {
  const auto time = [](double off) { return [off](double n) { return amdahl_time(n) + (n == 8 ? off : 0); }; };
  const std::vector<int> sizes = {12};
  const auto good = project(series_of(Mode::strong, {1, 2, 4, 8}, time(0)), sizes);
  const auto bad = project(series_of(Mode::strong, {1, 2, 4, 8}, time(1)), sizes);
  EXPECT_NEAR(bad->error, 3.0 / 4 - 1, 1e-6);
  const auto width = [](const Projection& one) {
    return std::log(one.sizes[0].time->interval->high / one.sizes[0].time->interval->low);
  };
  EXPECT_LT(width(*good), 0.01);
  EXPECT_GT(width(*bad), 2 * std::log1p(2.0 / bad->sizes[0].time->value) - 1e-9);
}

TEST(Projection, NeedsThreeWorldSizes) {
  const std::vector<int> sizes = {16};
  EXPECT_FALSE(project(series_of(Mode::strong, {1, 2}, amdahl_time, 1.01), sizes));
  EXPECT_TRUE(project(series_of(Mode::strong, {1, 2, 4}, amdahl_time, 1.01), sizes));
}

// A step with compute, serial work and a ring's all-reduce: 2 (N - 1) alpha + 2 (N - 1)/N S/beta.
struct Truth {
  Mode mode = Mode::weak;
  double compute = 1, serial = 0, alpha = 0, volume = 0;  // seconds

  double at(double n) const {
    return (mode == Mode::strong ? compute / n : compute) + serial + 2 * (n - 1) * alpha + 2 * (n - 1) / n * volume;
  }
};

// Steps measured to 1 %, at three to six world sizes; truth between no communication and half of the step.
TEST(Projection, RangesContainTheTruth) {
  std::mt19937_64 random(17);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::normal_distribution<double> normal(0, 1);
  constexpr double error = 0.01;
  const std::array<std::vector<int>, 4> worlds = {{{1, 2, 4}, {1, 2, 4, 8}, {2, 4, 8, 16}, {1, 2, 4, 8, 16, 32}}};
  const std::array<int, 3> factors = {2, 8, 64};
  std::array<int, 3> said{}, held{};
  constexpr int cases = 400;
  for (int i = 0; i < cases; ++i) {
    Truth truth;
    truth.mode = i % 2 == 0 ? Mode::weak : Mode::strong;
    truth.serial = truth.mode == Mode::strong ? 0.1 * uniform(random) : 0;
    truth.alpha = uniform(random) < 0.3 ? 0 : std::pow(10, -5 + 3 * uniform(random));
    truth.volume = uniform(random) < 0.3 ? 0 : 0.2 * uniform(random);
    const std::vector<int>& ranks = worlds[static_cast<std::size_t>(i / 2) % worlds.size()];
    const Series series = series_of(
        truth.mode, ranks, [&](double n) { return truth.at(n) * std::exp(error * normal(random)); },
        std::exp(1.96 * error));
    std::vector<int> sizes;
    for (const int factor : factors) sizes.push_back(factor * ranks.back());
    const auto made = project(series, sizes);
    ASSERT_TRUE(made);
    for (std::size_t k = 0; k < factors.size(); ++k) {
      const Projected& size = made->sizes[k];
      if (!size.time) continue;
      ++said[k];
      const double t = truth.at(size.ranks);
      held[k] += size.time->interval->low <= t && t <= size.time->interval->high;
    }
  }
  for (std::size_t k = 0; k < factors.size(); ++k) {
    SCOPED_TRACE(fmt::format("{} x the largest: {} of {} said contain the truth", factors[k], held[k], said[k]));
    EXPECT_GE(held[k], 0.95 * said[k]);
    RecordProperty(fmt::format("said_{}", factors[k]), said[k]);
    RecordProperty(fmt::format("held_{}", factors[k]), held[k]);
  }
  // Ranges that contain everything, or are never given, would prove nothing.
  EXPECT_GE(said[0], cases * 3 / 4);
  EXPECT_GE(said[1], cases / 3);
  EXPECT_GE(said[2], cases / 20);
}

// A machine for 8 ranks at USD 3.6 an hour; a step of 1e6 tokens takes 10 s on one rank, 0.2 + 0.8 / N of that on N.
TEST(PricedProjection, CostsFollowTimeAndMachines) {
  std::vector<Record> records;
  for (const int ranks : {1, 2, 4, 8}) {
    records.push_back(step_record("strong", ranks, amdahl_time(ranks)));
    Record& record = records.back();
    record.metrics.push_back(test::metric("throughput", 1e6 / amdahl_time(ranks), "tokens/s"));
    record.device = "cpu";
  }
  const RunSet runs(one_run(std::move(records)));
  const std::vector<int> sizes = {16};
  PriceSource prices;
  prices.given = 3.6;
  const Projections made = projections_of(runs, sizes, prices);
  ASSERT_EQ(made.all.size(), 1u);
  EXPECT_EQ(made.max_worlds, 4u);
  // Two machines for 2.5 s.
  const auto usd = made.all[0].usd(made.all[0].projection.sizes[0]);
  ASSERT_TRUE(usd);
  EXPECT_NEAR(usd->value, 2 * 2.5 * 3.6 / 3600, 1e-6);
  const Json json = to_json(made);
  EXPECT_EQ(json["series"][0]["scaling"], "strong");
  EXPECT_EQ(json["series"][0]["projected"][0]["usd_per"], "million tokens");
  EXPECT_THAT(to_text(made), testing::HasSubstr("  16 ranks: "));
  EXPECT_THAT(to_text(made), testing::HasSubstr(" per million tokens (--price)"));
}

TEST(PricedProjection, TooFewWorldSizesAreCounted) {
  const RunSet two(one_run({step_record("strong", 1, 10), step_record("strong", 2, 6)}));
  const Projections made = projections_of(two, std::vector<int>{4}, {});
  EXPECT_TRUE(made.all.empty());
  EXPECT_EQ(made.max_worlds, 2u);
  EXPECT_EQ(projections_of(RunSet(one_run({step_record("strong", 1, 10)})), std::vector<int>{4}, {}).max_worlds, 1u);
}

}  // namespace
}  // namespace assay::report::scaling
