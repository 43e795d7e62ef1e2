// The speed that published runs make likely: less sure than the bounds of a forecast, but a figure.
#pragma once

#include "harness/machine/hardware.h"
#include "reports/model/estimate.h"
#include "reports/sizing/published.h"
#include "workloads/parallel/held.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay::report::sizing {

// The figure of `peak` for a precision; nothing if the sheet lacks it.
std::optional<double> peak_of(const HardwareSheet& sheet, std::string_view precision);

struct Expected {
  Estimate value;
  std::string source;  // for people
};

// Model FLOP/s over the peak. The value is the mean of the logarithms of up to ten nearest runs, weighted by
// 1 / (1 + distance): a doubling of the GPUs counts 1; of the parameters and the sequence, other hardware and another
// precision 1/2 each. A run's utilization counts as it would be at this peak: (peaks' ratio)^0.2 times as much; the
// peak of GPUs with a power limit is (limit / TDP)^(1/3) of the sheet's. The interval has the factor that holds 90 % of
// the errors when each run is foretold from the others: of those with a run of their own hardware among the nearest, if
// that is so here; else of all, foretold from other hardware alone. Nothing for images and CPUs, beyond twice or half
// of all that is published, or with fewer than four runs to learn from.
std::optional<Expected> expected_utilization(const HardwareSheet& sheet, std::span<const HardwareSheet> sheets,
                                             const parallel::Work& work, std::int64_t gpus, const Published& published);

// How often the interval holds the utilization of a run that it does not know, the medians of its high over its low end
// and of the relative error of its value. Of two runs on different hardware, both unknown, the one with more FLOPs for
// a USD is named right, or their ranges overlap (tied).
struct LeftOut {
  int runs = 0;
  int held = 0;
  double width = 0;
  double error = 0;
  int pairs = 0;
  int right = 0;
  int tied = 0;
};
using PriceOf = std::function<std::optional<double>(const std::string& hardware)>;  // USD per hour of a GPU
LeftOut leave_one_out(std::span<const HardwareSheet> sheets, const Published& published, const PriceOf& price_of);

}  // namespace assay::report::sizing
