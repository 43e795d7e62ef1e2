// The tables of docs/history-detector.md, each printed to stdout. `count`: series simulated for each line.
#pragma once

#include "tools/history/simulated_noise.h"

#include <cstddef>
#include <vector>

namespace assay::history {

// Steps of these sizes.
void power(std::size_t count, const std::vector<Kind>& kinds, const std::vector<double>& steps);
// Steps after a stay at another level, which has ended.
void after_excursions(std::size_t count, const std::vector<Kind>& kinds);
// A step of the size said to be detectable: it should be found in 14 nights in 80 % of cases.
void detectable(std::size_t count, const std::vector<Kind>& kinds);

// Large steps in young series, false alarms of stores of every size (of `quiet` series), states that come and go.
void large_steps(std::size_t count, std::size_t quiet);

// `history confirm`: suspects among `count` clean series, `panels` times, and steps.
void confirmations(std::size_t count, std::size_t panels, const std::vector<Kind>& kinds);
// `history check --branch`: `blocks` branches for each series.
void branches(std::size_t count, std::size_t blocks, const std::vector<Kind>& kinds);

}  // namespace assay::history
