// Nights by the order of commits, for a project that measures many of them in a day.
#pragma once

#include "harness/history/store/store.h"

#include <optional>
#include <span>
#include <string>

namespace assay::history {

// The contents with a night for each commit that was measured, in the order of these first parents (the oldest first),
// whenever that was. Runs of other commits are left out; `left_out` is their number. Throws UsageError if no run is
// left.
store::Contents order_by_commit(store::Contents contents, std::span<const std::string> first_parents,
                                std::size_t* left_out = nullptr);

// The day of a night: of its last run, where nights are commits.
Night day_of(const store::Contents& contents, Night night);
// The night that was the newest on a day.
Night night_of_day(const store::Contents& contents, Night day);
// The night of a commit, where nights are commits; absent if it has none.
std::optional<Night> night_of_commit(const store::Contents& contents, const std::string& commit);
// "2026-01-31", or where nights are commits, "3f9c2ab12345 (2026-01-31)".
std::string night_text(const store::Contents& contents, Night night);

// How many nights have runs of several commits, which count as one figure; and how many such a night has at most.
struct CrowdedNights {
  std::size_t nights = 0;
  std::size_t max_commits = 0;
};
CrowdedNights crowded_nights(const store::Contents& contents);

}  // namespace assay::history
