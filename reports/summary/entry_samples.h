// The samples of an entry as reports use them.
#pragma once

#include "harness/runs/run_set.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::report {

struct EntrySamples {
  std::vector<double> values;                // the finite values, in Samples::unit
  std::vector<double> at;                    // seconds since the case began, one per value; empty if unknown
  std::optional<double> unthrottled_median;  // median while no GPU was throttled; absent if none ever was
  std::string problem;                       // why they cannot be read; empty if they can
};
EntrySamples samples_of(const Entry& entry);

struct SampleNumbers {
  double median = 0, p5 = 0, p95 = 0;
};
// Absent without samples.
std::optional<SampleNumbers> numbers_of(const EntrySamples& samples);

}  // namespace assay::report
