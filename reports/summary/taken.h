// The samples of an entry, as reports use them.
#pragma once

#include "reports/data/run_set.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::report {

struct Taken {
  std::vector<double> values;  // the finite ones, in Samples::unit
  std::vector<double> at;      // seconds since the case began; empty where unknown, else as long as `values`
  std::string problem;         // why they cannot be read; empty when they can
};
Taken samples_of(const Entry& entry);

struct SampleNumbers {
  double median = 0, p5 = 0, p95 = 0;
};
// Nothing without samples.
std::optional<SampleNumbers> numbers_of(const Taken& taken);

}  // namespace assay::report
