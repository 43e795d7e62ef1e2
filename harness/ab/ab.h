// Decides between two sides: measures them in turn until the answer is certain.
#pragma once

#include "harness/core/clock.h"
#include "harness/record/metric.h"
#include "harness/statistics/sequential.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace assay::ab {

// One figure of one run of a side. Cases are matched by name.
struct Figure {
  std::string name;
  double value = 0;  // above 0, finite
  std::string unit = "s";
  Better better = Better::lower;
};

// Measures a side once: a figure per case, the same cases each time. Empty: it was not finished at the deadline, or was
// interrupted; no more is measured then. Its exceptions go to the caller of run().
using Side = std::function<std::vector<Figure>(Clock::time_point deadline)>;

// Ratios are B's speed over A's: above 1, B is faster, whichever way the figure counts.
struct Outcome {
  Direction verdict = Direction::unknown;
  double ratio = 1;
  // Contain the ratio with probability 1 - error, of all cases at once; unknown ends are 0 and infinite.
  double low = 0, high = std::numeric_limits<double>::infinity();
  std::size_t pairs = 0;  // pairs until the verdict
};

struct Case {
  std::string name;
  std::string unit;
  double a = 0, b = 0;  // medians of the figures
  Outcome outcome;
};

struct Options {
  double tolerance = 0.02;  // changes up to this size are `same`; above 0, below 1
  double error = 0.05;      // probability that any verdict is wrong, however many cases; above 0, below 1
  double budget = 600;      // seconds for everything; above 0
  std::uint64_t seed = 0;   // seed of the order within pairs
};

enum class Ended { decided, budget, interrupted };

struct Result {
  // slower if any case is; else unknown if any is; else faster if any is; else same. The ratio is the geometric mean
  // of the cases'.
  Outcome all;
  std::vector<Case> cases;             // in the order of A's first figures; none if the warm-up was not finished
  std::vector<std::string> one_sided;  // cases of one side only, which are not judged
  Ended ended = Ended::decided;
  double seconds = 0;  // used
};

// Measures each side once to warm up, then pairs in random order until every case has its verdict, the budget is used
// up, or what is left of it is shorter than any pair so far. Throws UsageError for options out of range and for figures
// of the warm-up that cannot be compared; Error if later figures cannot.
Result run(const Side& a, const Side& b, const Options& options);

}  // namespace assay::ab
