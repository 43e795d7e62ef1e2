// What came of a crosscheck.
#pragma once

#include "harness/fitness/fitness.h"
#include "harness/statistics/statistics.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::crosscheck {

// One test at one size.
struct Row {
  std::string tool, test;
  std::int64_t bytes = 0;
  std::vector<double> ours, theirs, ratios;  // by pair
  double ratio = 0;                          // ours over theirs; the median
  Interval interval;                         // of the ratio, 95 %
  Fitness fitness = Fitness::unsure;         // within the tolerance, beyond it, or the interval reaches over it
};
inline constexpr FitnessWords row_words = {"within", "unknown", "unclear", "beyond"};

struct Found {
  std::string name, path;  // path: empty if it is not here
};

struct Result {
  double tolerance = 0;
  std::vector<Found> tools;
  std::vector<std::string> remarks;  // what was not compared, and why
  std::size_t missing = 0;           // of them, what should have been
  std::vector<Row> rows;

  std::size_t count(Fitness wanted) const {
    return static_cast<std::size_t>(std::ranges::count(rows, wanted, &Row::fitness));
  }
  // fail if a row is beyond the tolerance; unknown if there is none, or one is missing.
  Fitness fitness() const {
    Fitness all = rows.empty() || missing > 0 ? Fitness::unknown : Fitness::pass;
    for (const Row& row : rows) all = worst(all, row.fitness);
    return all;
  }
};

}  // namespace assay::crosscheck
