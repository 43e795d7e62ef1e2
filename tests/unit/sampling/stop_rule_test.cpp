// The stop rule, and what it and the statistics must achieve together: intervals contain the true median, although the
// samples themselves decided when to stop.
#include "harness/sampling/stop_rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <ostream>
#include <random>
#include <vector>

namespace assay {
namespace {

// Feeds the rule until it stops; a sample takes `period` seconds.
StopRule run(const Protocol& protocol, const std::function<double()>& sample, double period = 1e-3) {
  StopRule rule(protocol);
  for (int i = 1; !rule.add(sample(), period * i); ++i) {
  }
  return rule;
}

TEST(StopRule, SteadySamplesStopOnNoise) {
  Protocol protocol;
  const StopRule rule = run(protocol, [] { return 1.0; });
  EXPECT_EQ(rule.stopped_by(), StopReason::noise);
  EXPECT_GE(rule.values().size(), 30u);
  EXPECT_GE(static_cast<double>(rule.values().size()) * 1e-3, 0.1 * protocol.max_seconds);
  EXPECT_LT(rule.values().size(), 1000u);
}

TEST(StopRule, NeverBeforeMinSamplesUnlessTimeIsUp) {
  Protocol protocol;
  protocol.min_samples = 200;
  EXPECT_GE(run(protocol, [] { return 1.0; }).values().size(), 200u);
  const StopRule late = run(
      protocol, [] { return 1.0; }, 1.0);
  EXPECT_EQ(late.values().size(), 3u);
  EXPECT_EQ(late.stopped_by(), StopReason::time);
}

TEST(StopRule, NeverEmpty) {
  Protocol protocol;
  protocol.max_seconds = 0;
  EXPECT_EQ(run(protocol, [] { return 1.0; }).values().size(), 1u);
}

TEST(StopRule, CountComesFirst) {
  Protocol protocol;
  protocol.max_samples = 3;
  const StopRule rule = run(
      protocol, [] { return 1.0; }, 1.0);
  EXPECT_EQ(rule.values().size(), 3u);
  EXPECT_EQ(rule.stopped_by(), StopReason::count);
}

TEST(StopRule, BatchesAreAtLeastSixteenSamplesUnlessTheseAreLong) {
  Protocol protocol;
  protocol.max_seconds = 30;
  const auto first = [&](double seconds) { return StopRule(protocol).next_batch(seconds, 0); };
  EXPECT_EQ(first(0), 256u);
  EXPECT_EQ(first(7e-3), 85u);
  EXPECT_EQ(first(0.1), 16u);
  EXPECT_EQ(first(0.1875), 16u);
  EXPECT_EQ(first(0.5), 6u);
  EXPECT_EQ(first(2), 1u);
  EXPECT_EQ(first(100), 1u);
  protocol.max_samples = 9;
  EXPECT_EQ(first(0.1), 9u);
}

TEST(StopRule, TheLastBatchIsWhatIsLeftOfTheTime) {
  Protocol protocol;
  protocol.max_seconds = 30;
  StopRule rule(protocol);
  const std::vector<double> batch(16, 0.1);
  EXPECT_FALSE(rule.add(batch, 26.7));
  EXPECT_EQ(rule.next_batch(0.1, 26.7), 16u);
  EXPECT_FALSE(rule.add(batch, 26.95));
  EXPECT_EQ(rule.next_batch(0.1, 26.95), 31u);
  EXPECT_TRUE(rule.add(std::vector<double>(31, 0.09), 29.7));
  EXPECT_EQ(rule.stopped_by(), StopReason::time);
  EXPECT_EQ(rule.values().size(), 63u);
}

// A first step may take longer than the limit, and say nothing about the others.
TEST(StopRule, TheFirstBatchIsNeverTheLast) {
  Protocol protocol;
  StopRule rule(protocol);
  EXPECT_EQ(rule.next_batch(100, 0), 1u);
  EXPECT_FALSE(rule.add(0.01, 0.01));
}

TEST(StopRule, TwoEqualModesAreAPlateau) {
  Protocol protocol;
  protocol.max_seconds = 1000;
  std::mt19937_64 random(3);
  const StopRule rule = run(
      protocol, [&] { return std::uniform_real_distribution<>()(random) < 0.5 ? 1.0 : 1.3; }, 0.5);
  EXPECT_EQ(rule.stopped_by(), StopReason::plateau);
}

TEST(StopRule, ADriftRunsIntoTheTimeLimit) {
  double x = 1;
  EXPECT_EQ(run(Protocol{}, [&] { return x *= 1.001; }).stopped_by(), StopReason::time);
}

TEST(StopRule, ADriftFarBelowTheTargetStopsOnNoise) {
  double x = 1;
  EXPECT_EQ(run(Protocol{}, [&] { return x *= 1.0000001; }).stopped_by(), StopReason::noise);
}

TEST(StopRule, NoisierDataTakeMoreSamples) {
  const auto samples = [](double deviation) {
    std::mt19937_64 random(9);
    std::normal_distribution<double> normal(1.0, deviation);
    return run(Protocol{}, [&] { return normal(random); }).values().size();
  };
  EXPECT_LT(samples(0.01), samples(0.1));
}

// A kind of sample with a known median.
struct Kind {
  const char* name;
  double median;
  double max_null;  // share of trials that may end without an interval
  double period;    // seconds a sample takes: how many fit into the time limit
  std::function<std::function<double()>(std::mt19937_64&)> make;
};
std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }

auto normal(double deviation) {
  return [deviation](std::mt19937_64& random) {
    return [&random, d = std::normal_distribution<>(1.0, deviation)]() mutable { return d(random); };
  };
}

auto log_normal(double deviation) {
  return [deviation](std::mt19937_64& random) {
    return [&random, d = std::lognormal_distribution<>(0.0, deviation)]() mutable { return d(random); };
  };
}

// Modes at 1 and 1.2, each a normal of deviation 0.01; the lower one with probability `low`.
auto bimodal(double low) {
  return [low](std::mt19937_64& random) {
    return [&random, low, pick = std::bernoulli_distribution(low), d = std::normal_distribution<>(0, 0.01)]() mutable {
      return (pick(random) ? 1.0 : 1.2) + d(random);
    };
  };
}

// A stationary first-order autoregressive series.
auto autoregressive(double deviation, double phi) {
  return [deviation, phi](std::mt19937_64& random) {
    std::normal_distribution<> d;
    return [&random, deviation, phi, d, x = d(random)]() mutable {
      x = phi * x + std::sqrt(1 - phi * phi) * d(random);
      return 1.0 + deviation * x;
    };
  };
}

class Coverage : public testing::TestWithParam<Kind> {};

// Trials continue until this many had an interval; few short autocorrelated series have one.
#ifndef ASSAY_COVERAGE_TRIALS
#define ASSAY_COVERAGE_TRIALS 2000
#endif

TEST_P(Coverage, IntervalsContainTheTrueMedian) {
  constexpr int wanted = ASSAY_COVERAGE_TRIALS;
  int held = 0, missed = 0, null = 0;
  for (std::uint64_t trial = 0; held + missed < wanted && null < 100 * wanted; ++trial) {
    std::mt19937_64 random(0x5eed0fa5a7ULL + 1'000'003 * trial);
    const Summary summary = summarize(run(Protocol{}, GetParam().make(random), GetParam().period).values());
    if (!summary.ci95)
      ++null;
    else if (summary.ci95->low <= GetParam().median && GetParam().median <= summary.ci95->high)
      ++held;
    else
      ++missed;
  }
  RecordProperty("held", held);
  RecordProperty("null", null);
  EXPECT_EQ(held + missed, wanted);
  if (wanted < 2000) return;  // a sanitizer's few trials only exercise the code: their shares mean nothing
  EXPECT_GE(held, 0.93 * wanted);
  EXPECT_LE(null, GetParam().max_null * (wanted + null));
}

// The period at which the time limit of 3 s ends sampling after `samples`.
constexpr double few(int samples) { return 3.0 / (samples - 0.5); }

// 70 % of the bimodal samples lie in the lower mode: the median is its quantile 0.5 / 0.7.
constexpr double lower_mode_median = 1.0 + 0.01 * 0.565949;

INSTANTIATE_TEST_SUITE_P(Kinds, Coverage,
                         testing::Values(Kind{"normal", 1.0, 0.005, 1e-3, normal(0.02)},
                                         Kind{"normal_noisy", 1.0, 0.005, 2e-3, normal(0.1)},
                                         Kind{"normal_20", 1.0, 0.15, few(20), normal(0.02)},
                                         Kind{"normal_30", 1.0, 0.15, few(30), normal(0.02)},
                                         Kind{"normal_50", 1.0, 0.15, few(50), normal(0.1)},
                                         Kind{"normal_300", 1.0, 0.01, few(300), normal(0.1)},
                                         Kind{"log_normal", 1.0, 0.005, 2e-3, log_normal(0.1)},
                                         Kind{"log_normal_wide", 1.0, 0.005, 2e-3, log_normal(0.5)},
                                         Kind{"log_normal_30", 1.0, 0.15, few(30), log_normal(0.5)},
                                         Kind{"log_normal_100", 1.0, 0.05, few(100), log_normal(0.5)},
                                         Kind{"bimodal", lower_mode_median, 0.005, 2e-3, bimodal(0.7)},
                                         Kind{"bimodal_equal", 1.1, 0.005, 2e-3, bimodal(0.5)},
                                         Kind{"bimodal_30", lower_mode_median, 0.15, few(30), bimodal(0.7)},
                                         Kind{"bimodal_100", lower_mode_median, 0.05, few(100), bimodal(0.7)},
                                         Kind{"autoregressive", 1.0, 0.02, 1e-3, autoregressive(0.02, 0.6)},
                                         Kind{"autoregressive_noisy", 1.0, 0.02, 2e-3, autoregressive(0.1, 0.6)},
                                         Kind{"autoregressive_20", 1.0, 0.99, few(20), autoregressive(0.1, 0.6)},
                                         Kind{"autoregressive_30", 1.0, 0.99, few(30), autoregressive(0.02, 0.6)},
                                         Kind{"autoregressive_50", 1.0, 0.99, few(50), autoregressive(0.02, 0.6)},
                                         Kind{"autoregressive_100", 1.0, 0.95, few(100), autoregressive(0.1, 0.6)},
                                         Kind{"autoregressive_300", 1.0, 0.25, few(300), autoregressive(0.1, 0.6)}),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace assay
