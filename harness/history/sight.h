// How small a step a history can see, and where it sees none.
#pragma once

#include "harness/history/history.h"

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace assay::history {

inline constexpr double blind_step = 1;  // a series that shows no step below it, of 100 %, is blind

// The smallest step that alarms within 14 nights in 80 % of cases, as a share of speed and never below the tolerance;
// absent if the series has fewer than 15 nights.
std::optional<double> smallest_alarm(const SeriesState& state, const Options& options);
// The median over each family's series.
std::map<std::string, double> detectable(const History& history);

// How many of the compared series show no step below blind_step.
struct Sight {
  std::size_t series = 0;
  std::size_t blind = 0;
  std::size_t young = 0;  // series that are too short to be compared

  bool is_blind() const { return 2 * blind > series; }
  // "blind: in 9 of 10 series no step below 100 % alarms within 14 nights"; empty if no series is blind.
  std::string text() const;
};
// The sight of the series that ran in the week up to the last night: all, or these.
Sight sight_of(const History& history);
Sight sight_of(const History& history, std::span<const std::size_t> series);

}  // namespace assay::history
