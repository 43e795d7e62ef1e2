// Two sides of the same simulated machine with noise between runs and correlated samples. At most 5 of 100 comparisons
// call something slower or faster, for any noise and number of runs.
#include "reports/compare/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace assay::report {
namespace {

struct Machine {
  double between = 0.02;  // standard deviations of logarithms: between runs
  double within = 0.01;   // and between samples of a run
  int cases = 10;
  int runs = 3;  // per side
};

class Simulation {
 public:
  explicit Simulation(const Machine& machine) : machine_(machine) {}

  // One side; `factor` multiplies the times of case 0.
  RunSet side(double factor = 1) {
    std::vector<RunData> runs(static_cast<std::size_t>(machine_.runs));
    for (RunData& run : runs) {
      run.run = {{"schema", 1}, {"started", std::to_string(++count_)}};
      for (int i = 0; i < machine_.cases; ++i) run.records.push_back(record(i, i == 0 ? factor : 1));
    }
    return RunSet(std::move(runs));
  }

 private:
  Record record(int number, double factor) {
    std::normal_distribution<double> normal;
    const double level = std::log(factor) + machine_.between * normal(random_);
    // First-order autoregressive samples with correlation 0.5 and standard deviation `within`.
    std::vector<double> times;
    double state = normal(random_);
    for (int i = 0; i < 60; ++i) {
      state = 0.5 * state + std::sqrt(0.75) * normal(random_);
      times.push_back(std::exp(level + machine_.within * state));
    }
    const Summary summary = summarize(times);
    Record made;
    made.key = "launch/op=" + std::to_string(number);
    made.family = "launch";
    made.metrics = {{"latency", summary.median, "s", summary.ci95, Better::lower, {}, {}}};
    made.samples.values = times;
    return made;
  }

  Machine machine_;
  std::mt19937 random_{20260131};
  int count_ = 0;
};

// How many of `pairs` comparisons of a machine with itself call anything changed.
int false_alarms(const Machine& machine, int pairs) {
  Simulation simulation(machine);
  int alarms = 0;
  for (int i = 0; i < pairs; ++i) {
    const RunSet base = simulation.side(), head = simulation.side();
    const CompareCounts counts = compare(base, head, {}).counts;
    alarms += counts.slower + counts.faster > 0;
  }
  return alarms;
}

TEST(CompareFalseAlarms, AreAtMostFivePercent) {
  const Machine machines[] = {
      {.between = 0.01, .cases = 1, .runs = 1},  {.between = 0.015, .cases = 1, .runs = 1},
      {.between = 0.02, .cases = 12, .runs = 1}, {.between = 0.06, .within = 0.03, .cases = 12, .runs = 1},
      {.between = 0.01, .cases = 4, .runs = 2},  {.between = 0.02, .cases = 1, .runs = 3},
      {.between = 0.05, .cases = 1, .runs = 3},  {.between = 0.10, .cases = 6, .runs = 3},
      {.between = 0.02, .cases = 6, .runs = 5},  {.between = 0.10, .within = 0.05, .cases = 1, .runs = 5},
  };
  constexpr int pairs = 200;
  for (const Machine& machine : machines) {
    const int alarms = false_alarms(machine, pairs);
    RecordProperty("alarms", alarms);
    EXPECT_LE(100 * alarms, 5 * pairs) << machine.runs << " runs per side, " << machine.cases << " cases, "
                                       << machine.between << " between runs";
  }
}

// Real changes must be found: a case 10 % slower is found in most comparisons of a quiet machine.
TEST(CompareFalseAlarms, AChangeOfTenPercentIsFound) {
  for (const Machine& machine :
       {Machine{.between = 0.01, .cases = 12, .runs = 1}, Machine{.between = 0.01, .cases = 1, .runs = 1},
        Machine{.between = 0.01, .cases = 6, .runs = 3}}) {
    Simulation simulation(machine);
    int found = 0;
    for (int i = 0; i < 100; ++i) {
      const RunSet base = simulation.side(), head = simulation.side(1.1);
      found += compare(base, head, {}).counts.slower > 0;
    }
    EXPECT_GE(found, 60) << machine.runs << " runs per side, " << machine.cases << " cases";
  }
}

}  // namespace
}  // namespace assay::report
