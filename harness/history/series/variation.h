// The sources of a family's noise, which show whether more samples, runs or machines would help.
#pragma once

#include "harness/history/series/tracked.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::history {

// Standard deviations of the logarithm of a figure (0.01 is about 1 %): medians over the family's series, of their last
// 60 nights. Components of variance as in a nested analysis of variance: what a level shows, less what the levels
// inside it explain. Absent where they are not known: between runs without nights of several, between machines with
// one.
struct Variation {
  std::string family;
  std::size_t series = 0;
  std::optional<double> within_run;
  std::optional<double> between_runs;  // between the runs of a night
  std::optional<double> between_nights;
  std::optional<double> between_machines;
  double runs_per_night = 1;
  std::string advice;  // what to buy: samples, runs, or nothing
};

// The variation of each family, sorted by name. `states` are in the order of `series`.
std::vector<Variation> variations(const store::Contents& contents, const std::vector<TrackedSeries>& series,
                                  const std::vector<SeriesState>& states);

}  // namespace assay::history
