// How many pairs a verdict takes, against designs of fixed size, and how often it is wrong, under noise of many kinds.
// Prints its tables; docs/ab.md quotes them, from ASSAY_POWER_TRIALS=1000.
#include "harness/core/rng.h"
#include "harness/statistics/sequential.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace assay {
namespace {

constexpr double tolerance = 0.02;
constexpr double error = 0.05;
const int trials = [] {
  const char* asked = std::getenv("ASSAY_POWER_TRIALS");
  return asked ? std::atoi(asked) : 100;
}();
const bool few = trials < 100;  // only to run the code
constexpr std::size_t max_pairs = 1500;

// Log ratios of pairs of runs in random order on one machine; sigma is that of a pair where the noise has one.
class Machine {
 public:
  Machine(const std::string& kind, double sigma, double change, int trial)
      : kind_(kind), sigma_(sigma), theta_(std::log1p(change)), random_(static_cast<std::uint64_t>(trial), kind) {}

  double pair() {
    const double first = run(), second = run();
    return theta_ + (uniform() < 0.5 ? first - second : second - first);
  }

 private:
  double uniform() { return random_.uniform(used_++); }
  double normal() { return random_.normal(used_++); }

  // The logarithm of one run's time.
  double run() {
    const double each = sigma_ / std::sqrt(2.0);
    if (kind_ == "normal") return each * normal();
    if (kind_ == "t3") {  // with sigma for its bulk
      const double a = normal(), b = normal(), c = normal();
      return each * normal() / std::sqrt((a * a + b * b + c * c) / 3);
    }
    if (kind_ == "spikes") {  // one run in ten is disturbed, by a log-normal amount
      const double spike = uniform() < 0.1 ? 3 * sigma_ * std::exp(0.8 * normal()) : 0;
      return 0.7 * each * normal() + spike;
    }
    if (kind_ == "autoregressive") return each * normal() + (load_ = 0.9 * load_ + 0.44 * each * normal());
    // A load that rises, falls and comes in bursts of its own rhythm.
    ++runs_;
    const double drift = 5 * sigma_ * std::sin(runs_ / 40.0) + 0.2 * sigma_ * runs_;
    return each * normal() + drift + (runs_ / 3 % 2 == 0 ? sigma_ : 0);
  }

  std::string kind_;
  double sigma_, theta_;
  Rng random_;
  std::uint64_t used_ = 0;
  double load_ = 0;
  int runs_ = 0;
};

constexpr const char* kinds[] = {"normal", "t3", "spikes", "autoregressive", "drift"};

struct Outcome {
  double pairs = 0;  // mean
  std::map<Direction, int> count;
  int missed = 0;  // intervals without the truth when the verdict comes

  double share(Direction verdict) const {
    const auto found = count.find(verdict);
    return found == count.end() ? 0 : found->second / static_cast<double>(trials);
  }
};

Outcome simulate(const std::string& kind, double sigma, double change, std::size_t limit = max_pairs) {
  Outcome outcome;
  for (int trial = 0; trial < trials; ++trial) {
    Machine machine(kind, sigma, change, trial);
    PairedTest test(tolerance, error);
    while (test.verdict() == Direction::unknown && test.pairs() < limit) test.add(machine.pair());
    outcome.pairs += static_cast<double>(test.pairs()) / trials;
    ++outcome.count[test.verdict()];
    const Interval interval = test.interval();
    const double theta = std::log1p(change);
    outcome.missed += interval.low > theta || theta > interval.high;
  }
  return outcome;
}

// One-sided p value of values being above 0 on average: Student's t, or Wilcoxon's signed ranks.
double t_p(const std::vector<double>& values, double shift) {
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double t = (mean - shift) / std::sqrt(squares / (n - 1) / n);
  return boost::math::cdf(boost::math::complement(boost::math::students_t(n - 1), t));
}
double wilcoxon_p(std::vector<double> values, double shift) {
  for (double& value : values) value -= shift;
  std::sort(values.begin(), values.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  const double n = static_cast<double>(values.size());
  double ranks = 0;
  for (std::size_t i = 0; i < values.size(); ++i) ranks += values[i] > 0 ? static_cast<double>(i + 1) : 0;
  const double z = (ranks - n * (n + 1) / 4) / std::sqrt(n * (n + 1) * (2 * n + 1) / 24);
  return boost::math::cdf(boost::math::complement(boost::math::normal(), z));
}

using Test = double (*)(std::vector<double>, double);

// The answers from a number of pairs fixed beforehand: a 90 % interval within the tolerance (Schuirmann, Journal of
// Pharmacokinetics and Biopharmaceutics 1987), or a two-sided test of no change at 5 %, without our condition that the
// estimate be beyond the tolerance.
double share_right(const std::string& kind, double sigma, double change, int pairs, Test p_of) {
  int right = 0;
  for (int trial = 0; trial < trials; ++trial) {
    Machine machine(kind, sigma, change, trials + trial);
    std::vector<double> values(static_cast<std::size_t>(pairs));
    for (double& value : values) value = machine.pair();
    const double up = std::log1p(tolerance), down = std::log1p(-tolerance);
    if (change == 0)
      right += 1 - p_of(values, up) <= error && p_of(values, down) <= error;
    else
      right += p_of(values, 0) <= error / 2;
  }
  return right / static_cast<double>(trials);
}

// The smallest number of pairs with at least these shares of right verdicts, or 99 %.
int fixed_pairs(const std::string& kind, double sigma, const std::map<double, double>& wanted) {
  int best = static_cast<int>(max_pairs);
  for (const Test p_of : {Test([](std::vector<double> v, double s) { return t_p(v, s); }), Test(wilcoxon_p)}) {
    int low = 3, high = best;  // too few, enough
    while (high - low > std::max(1, low / 50)) {
      const int middle = (low + high) / 2;
      const bool enough = std::all_of(wanted.begin(), wanted.end(), [&](const auto& one) {
        return share_right(kind, sigma, one.first, middle, p_of) >= std::min(0.99, one.second);
      });
      (enough ? high : low) = middle;
    }
    best = high;
  }
  return best;
}

// What users meet, each as often as the others: nothing changed, and changes of twice the tolerance, 5, 10 and 20 %.
const std::vector<double> changes{0, 2 * tolerance, 0.05, 0.10, 0.20};

TEST(SequentialPower, TakesAThirdOfADesignOfFixedSize) {
  fmt::print("mean pairs until the verdict, tolerance 2 %, error 5 %; sigma is that of a pair\n");
  fmt::print("{:<15}{:>7}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}\n", "noise", "sigma", "A/A", "4 %", "5 %", "10 %",
             "20 %", "mean", "fixed", "ratio");
  for (const char* kind : kinds)
    for (const double sigma : {0.03, 0.05, 0.10}) {
      if (std::string(kind) != "normal" && sigma != 0.05) continue;
      double mean = 0;
      std::map<double, double> right;
      std::string line = fmt::format("{:<15}{:>6.0f}%", kind, 100 * sigma);
      for (const double change : changes) {
        const Outcome outcome = simulate(kind, sigma, change);
        mean += outcome.pairs / static_cast<double>(changes.size());
        right[change] = outcome.share(change == 0 ? Direction::same : Direction::faster);
        line += fmt::format("{:>8.1f}", outcome.pairs);
      }
      const int fixed = fixed_pairs(kind, sigma, right);
      fmt::print("{}{:>8.1f}{:>8}{:>8.2f}\n", line, mean, fixed, mean / fixed);
      // Few trials find the fixed size only to a fifth. With less noise nearly all verdicts take the fewest pairs there
      // are, and a fixed design would too.
      if (sigma >= 0.05 && !few) {
        EXPECT_LE(mean, fixed / 3.0 * (trials < 1000 ? 1.2 : 1)) << kind << " " << sigma;
      }
      for (const auto& [change, share] : right)
        EXPECT_GE(share, few ? 0 : 0.9) << kind << " " << sigma << " " << change;
    }
}

TEST(SequentialPower, IsRarelyWrongWhateverTheNoise) {
  fmt::print("share of wrong verdicts, and of intervals without the truth, in %\n");
  // Changes near the tolerance may take thousands of pairs, most of which add little.
  const std::size_t limit = trials < 1000 ? 400 : max_pairs;
  // The probability of as many wrong ones, if 5 % were, is below 1e-4.
  const double bound = error + 3.72 * std::sqrt(error * (1 - error) / trials);
  for (const char* kind : kinds)
    for (const double sigma : {0.01, 0.05}) {
      std::string line = fmt::format("{:<15}{:>6.0f}%", kind, 100 * sigma);
      for (const double change : {0.0, 0.01, tolerance, 0.03, -tolerance, -0.03}) {
        const Outcome outcome = simulate(kind, sigma, change, limit);
        double wrong = 0;
        if (change == 0) wrong = outcome.share(Direction::faster) + outcome.share(Direction::slower);
        if (change >= tolerance || change <= -tolerance) wrong = outcome.share(Direction::same);
        if (change != 0) wrong += outcome.share(change > 0 ? Direction::slower : Direction::faster);
        const double missed = outcome.missed / static_cast<double>(trials);
        line += fmt::format("  {:>5.1f} %: {:.1f}, {:.1f}", 100 * change, 100 * wrong, 100 * missed);
        EXPECT_LE(wrong, bound) << kind << " " << sigma << " " << change;
        EXPECT_LE(missed, bound) << kind << " " << sigma << " " << change;
      }
      fmt::print("{}\n", line);
    }
}

}  // namespace
}  // namespace assay
