// Whether anything but the run itself could have changed a record's figures, which are then lower bounds.
#pragma once

#include "harness/record/flags.h"
#include "harness/record/record.h"

namespace assay {

inline constexpr double notable_cpus = 0.05;  // share of a CPU

// Whether this part of what the run lost (`outside.cpus`, its steal, what a quota held back) counts.
inline bool notable(const OutsideCpu& outside, double cpus) {
  constexpr double notable_seconds = 0.05;  // CPU time of five of the kernel's ticks
  return cpus > notable_cpus && cpus * outside.seconds >= notable_seconds;
}

// Whether a GPU was slowed down while it measured.
inline bool throttled(const Record& record) {
  return (record.samples.throttled && !record.samples.throttled->empty()) ||
         flag::has_prefix(record.flags, flag::gpu_slowed_down);
}

inline bool disturbed(const Record& record) {
  const auto& outside = record.outside_cpu;
  return throttled(record) || (outside && (notable(*outside, outside->cpus) || notable(*outside, outside->steal) ||
                                           notable(*outside, outside->throttled.value_or(0))));
}

}  // namespace assay
