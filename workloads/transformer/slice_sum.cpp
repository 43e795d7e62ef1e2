#include "workloads/transformer/slice_sum.h"

#include "harness/core/error.h"

#include <algorithm>
#include <vector>

namespace assay::transformer {

namespace {

constexpr std::size_t max_blocks = 20;

// `figure` of the medians, and its interval.
template <typename Figure>
Estimated estimated(const SliceTimes& times, const Figure& figure) {
  const std::size_t steps = times.few.size(), blocks = std::min(max_blocks, steps);
  const auto between = [&](std::size_t begin, std::size_t end) {
    const auto middle = [&](std::span<const double> all) {
      return all.empty() ? 0.0 : median(all.subspan(begin, end - begin));
    };
    return figure(middle(times.few), middle(times.more), middle(times.whole));
  };
  std::vector<double> values;
  for (std::size_t block = 0; block < blocks; ++block)
    values.push_back(between(block * steps / blocks, (block + 1) * steps / blocks));
  Estimated result{between(0, steps), mean_interval(values)};
  if (result.ci95) {
    const double half = (result.ci95->high - result.ci95->low) / 2;
    result.ci95 = Interval{result.value - half, result.value + half};
  }
  return result;
}

}  // namespace

std::optional<SliceSum> sum_of_slices(const SliceTimes& times, std::int64_t layers) {
  ASSAY_CHECK(times.few.size() == times.more.size() && (times.whole.empty() || times.whole.size() == times.few.size()),
              "{}, {} and {} steps were not timed in turn", times.few.size(), times.more.size(), times.whole.size());
  constexpr double between = more_layers - few_layers;
  const auto of_layers = [&](auto count) {
    return [added = (static_cast<double>(count) - few_layers) / between](double few, double more) {
      return few + added * (more - few);
    };
  };
  const auto layer = [&](double few, double more, double) { return (more - few) / between; };
  const auto outside = [&](double few, double more, double) { return of_layers(0)(few, more); };
  const auto step = [&](double few, double more, double) { return of_layers(layers)(few, more); };
  SliceSum sum{estimated(times, layer), estimated(times, outside), estimated(times, step), std::nullopt};
  if (!(sum.layer.value > 0)) return std::nullopt;
  if (!times.whole.empty())
    sum.over_whole =
        estimated(times, [&](double few, double more, double whole) { return of_layers(layers)(few, more) / whole; });
  return sum;
}

Estimated estimated_median(std::span<const double> seconds) {
  return estimated({seconds, seconds, {}}, [](double few, double, double) { return few; });
}

Estimated rate_of(double amount, const Estimated& seconds) {
  Estimated rate{amount / seconds.value, std::nullopt};
  if (seconds.ci95 && seconds.ci95->low > 0)
    rate.ci95 = Interval{amount / seconds.ci95->high, amount / seconds.ci95->low};
  return rate;
}

}  // namespace assay::transformer
