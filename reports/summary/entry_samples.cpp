#include "reports/summary/entry_samples.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace assay::report {

EntrySamples samples_of(const Entry& entry) {
  EntrySamples samples;
  std::vector<double> values, at;
  try {
    std::tie(values, at) = timed_samples(*entry.run, *entry.record);
  } catch (const Error& error) {
    samples.problem = error.what();
    return samples;
  }
  const bool timed = at.size() == values.size() && std::ranges::all_of(at, [](double t) { return std::isfinite(t); });
  const std::vector<int> throttled = entry.record->samples.throttled.value_or(std::vector<int>());
  const std::set<int> set_aside(throttled.begin(), throttled.end());
  std::vector<double> others;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    if (!set_aside.contains(static_cast<int>(i))) others.push_back(values[i]);
    samples.values.push_back(values[i]);
    if (timed) samples.at.push_back(at[i]);
  }
  if (!set_aside.empty() && !others.empty()) samples.unthrottled_median = median(others);
  return samples;
}

std::optional<SampleNumbers> numbers_of(const EntrySamples& samples) {
  if (samples.values.empty()) return std::nullopt;
  return SampleNumbers{median(samples.values), quantile(samples.values, 0.05), quantile(samples.values, 0.95)};
}

}  // namespace assay::report
