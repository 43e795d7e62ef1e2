// Machines that took over from others: a new host, or a host that got another name.
#pragma once

#include "harness/history/series/tracked.h"

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace assay::history {

struct MachineSwap {
  std::string machine;            // the new machine
  std::vector<std::string> from;  // the old machines
  Night last_before = 0;          // the newest night of the old machines
  Night first_after = 0;          // the new machine's first night
  // Indices of tracked series of one case: on an old machine, and on the new one.
  std::vector<std::pair<std::size_t, std::size_t>> series;
};

// A machine with series of min_nights that has stopped, and another that began when it stopped (on its last night,
// within a week of it, or on the first night that anything ran again) and runs at least half of its cases. By night,
// then name.
std::vector<MachineSwap> machine_swaps(std::span<const TrackedSeries> series);

}  // namespace assay::history
