#include "reports/summary/taken.h"

#include "harness/core/error.h"
#include "harness/statistics/statistics.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace assay::report {

Taken samples_of(const Entry& entry) {
  Taken taken;
  std::vector<double> values, at;
  try {
    std::tie(values, at) = timed_samples(*entry.run, *entry.record);
  } catch (const Error& error) {
    taken.problem = error.what();
    return taken;
  }
  const bool timed =
      at.size() == values.size() && std::all_of(at.begin(), at.end(), [](double t) { return std::isfinite(t); });
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    taken.values.push_back(values[i]);
    if (timed) taken.at.push_back(at[i]);
  }
  return taken;
}

std::optional<SampleNumbers> numbers_of(const Taken& taken) {
  if (taken.values.empty()) return std::nullopt;
  return SampleNumbers{median(taken.values), quantile(taken.values, 0.05), quantile(taken.values, 0.95)};
}

}  // namespace assay::report
