#include "harness/statistics/outliers.h"

#include "harness/statistics/statistics.h"

#include <cmath>
#include <limits>
#include <vector>

namespace assay {

namespace {
constexpr double normal_quartile = 0.6745;  // MAD of a normal distribution of standard deviation 1
}

double Robust::score(double x) const {
  const double off = x - median;
  if (mad > 0) return normal_quartile * off / mad;
  return off == 0 ? 0 : std::copysign(std::numeric_limits<double>::infinity(), off);
}

Robust robust(std::span<const double> values) {
  Robust found{median(values), 0};
  std::vector<double> off;
  off.reserve(values.size());
  for (const double value : values) off.push_back(std::abs(value - found.median));
  found.mad = median(off);
  return found;
}

bool is_outlier(double x, const Robust& others) {
  return std::abs(others.score(x)) >= outlier_score &&
         std::abs(x - others.median) >= outlier_share * std::abs(others.median);
}

}  // namespace assay
