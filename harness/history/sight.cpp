#include "harness/history/sight.h"

#include "harness/core/units.h"
#include "harness/statistics/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace assay::history {

// What alarms must also be estimated as large as the tolerance: four in five of larger steps are, which exceed it by
// .84 standard errors. tools/history simulates the rest.
std::optional<double> smallest_alarm(const SeriesState& state, const Options& options) {
  if (!state.detectable) return std::nullopt;
  return std::expm1(std::max(*state.detectable, options.tolerance + 0.84 * state.spread));
}

std::map<std::string, double> detectable(const History& history) {
  std::map<std::string, std::vector<double>> families;
  for (std::size_t i = 0; i < history.analysis.series.size(); ++i)
    if (const auto step = smallest_alarm(history.analysis.series[i], history.options))
      families[history.series[i].identity.family].push_back(*step);
  std::map<std::string, double> medians;
  for (const auto& [family, steps] : families) medians[family] = median(steps);
  return medians;
}

std::string Sight::text() const {
  if (blind == 0) return "";
  return fmt::format("blind: in {} of {} series no step below {:g} % alarms within 14 nights{}", blind, series,
                     100 * blind_step,
                     young > 0 ? fmt::format(" ({} have fewer than {} nights)", young, min_nights) : "");
}

Sight sight_of(const History& history) {
  std::vector<std::size_t> all(history.series.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return sight_of(history, all);
}

Sight sight_of(const History& history, std::span<const std::size_t> series) {
  Sight sight;
  for (const std::size_t i : series) {
    if (history.series[i].track.nights.back() <= history.arrival.last.value_or(0) - week) continue;
    const auto step = smallest_alarm(history.analysis.series[i], history.options);
    ++sight.series;
    if (!step) ++sight.young;
    if (!step || *step > blind_step) ++sight.blind;
  }
  return sight;
}

}  // namespace assay::history
