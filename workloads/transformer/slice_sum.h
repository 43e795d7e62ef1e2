// The time of a whole model's step from the steps of two slices of it.
#pragma once

#include "harness/statistics/statistics.h"

#include <cstdint>
#include <optional>
#include <span>

namespace assay::transformer {

// A figure with a 95 % interval, unless fewer than six steps were timed.
struct Estimated {
  double value = 0;
  std::optional<Interval> ci95;
};

inline constexpr std::int64_t few_layers = 2, more_layers = 4;  // layers of the two slices

// Seconds of steps that were timed in turn, equally many of each: with few_layers, with more_layers, and of the whole
// model, if that was timed.
struct SliceTimes {
  std::span<const double> few, more, whole;
};

// A step of n layers takes `outside` + n * `layer`.
struct SliceSum {
  Estimated layer;
  Estimated outside;                    // embedding, head, loss, and what of the optimizer is theirs
  Estimated step;                       // the step of all layers
  std::optional<Estimated> over_whole;  // `step` over the whole model's
};

// Values are of the medians of all steps; nothing if more layers take no longer. Intervals are from the same figures of
// up to 20 blocks of neighbouring steps, by Student's t: what slows all steps of a block alike cancels where they are
// divided by one another, and correlation within a block does not narrow the interval.
std::optional<SliceSum> sum_of_slices(const SliceTimes& times, std::int64_t layers);
// The median, with its interval in the same way.
Estimated estimated_median(std::span<const double> seconds);

// amount / seconds.
Estimated rate_of(double amount, const Estimated& seconds);

}  // namespace assay::transformer
