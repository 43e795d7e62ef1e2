// Mean and spread of a non-empty series.
#pragma once

#include <numeric>
#include <span>

namespace assay {

// The arithmetic mean.
inline double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The sum of the squared differences from the mean.
inline double squared_deviations(std::span<const double> values) {
  const double center = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - center) * (value - center);
  return sum;
}

}  // namespace assay
