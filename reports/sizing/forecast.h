// How long a training takes on hardware that may never have been measured, and what it costs: ranges, never figures.
#pragma once

#include "harness/core/words.h"
#include "harness/machine/hardware.h"
#include "reports/model/estimate.h"
#include "reports/sizing/expected.h"
#include "reports/sizing/published.h"
#include "workloads/parallel/held.h"

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay::report::sizing {

using parallel::Work;

// Where the time of a step comes from.
enum class Basis { records, anchor, sheet };
constexpr auto words(Basis) { return std::to_array<std::string_view>({"records", "anchor", "sheet"}); }
using assay::name_of;

// A speed measured on some hardware.
struct Measured {
  std::string hardware;      // name of its sheet
  Estimate items_per_gpu;    // per second
  std::optional<int> ranks;  // that worked together; absent: as many as will
  Basis basis = Basis::records;
  std::string source;  // for people: "runs/a/records.jsonl line 3", "--anchor"
};

struct StepTime {
  Range seconds;
  Basis basis = Basis::sheet;
  std::string source;                     // for people: where both ends come from
  std::optional<Expected> expected = {};  // seconds, within the range
};

// The least time that the sheet allows: FLOPs over the peak, bytes over the memory's bandwidth, bytes exchanged over
// the fastest link, whichever is longest. The precision must have a peak.
double least_seconds(const HardwareSheet& sheet, const Work& work);

// From the sheet: at least least_seconds(), at most the FLOPs over the peak at the lowest utilization published for
// this hardware and precision. There is no upper end if fewer than two runs are published, or all are of other models:
// with less than half or more than twice the parameters, shorter sequences or fewer GPUs.
StepTime from_sheet(const HardwareSheet& sheet, const Work& work, std::int64_t gpus, const Published& published);

// From a speed measured on the same hardware: as measured at the same number of ranks, else with what publications say
// remains at others.
StepTime from_record(const Measured& measured, const Work& work, std::int64_t gpus, const Published& published);

// From a speed on other hardware, `from`: between the lowest and the highest of the ratios of the two sheets' peaks,
// memory bandwidths and, with several GPUs, links: a step's parts are bound by one of them. Not below least_seconds().
// Nothing if the sheets have no peak in common for the precision.
std::optional<StepTime> from_other(const HardwareSheet& from, const HardwareSheet& sheet, const Measured& measured,
                                   const Work& work, std::int64_t gpus, const Published& published);

// The best basis: a speed measured on this hardware, at the nearest number of ranks; one measured on other hardware
// (among several, the narrowest range); the sheet. Expected are the speed measured at this number of ranks; else the
// utilization that published runs make likely, times what the measured speed is of theirs where there is one.
StepTime forecast(const HardwareSheet& sheet, std::span<const HardwareSheet> sheets, std::span<const Measured> measured,
                  const Work& work, std::int64_t gpus, const Published& published);

// Wall hours of a training of `items` in all: steps, checkpoints, restarts, idle time.
Range hours_of(const StepTime& step, const Work& work, std::int64_t gpus, double items, const Published& published);
// The same of the expected step, with the middle of what others lost.
std::optional<Estimate> expected_hours(const StepTime& step, const Work& work, std::int64_t gpus, double items,
                                       const Published& published);

// Whether all of one range lies below all of the other.
bool surely_below(const Range& a, const Range& b);
Range scaled(const Range& range, double factor);
Estimate scaled(const Estimate& estimate, double factor);

// The price per hour at which a machine that runs `hours` costs the same as the first does: below `low` it is surely
// cheaper, above `high` surely dearer.
Range break_even(const Range& first_usd, const Range& hours);

}  // namespace assay::report::sizing
