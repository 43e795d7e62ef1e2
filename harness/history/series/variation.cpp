#include "harness/history/series/variation.h"

#include "harness/core/units.h"
#include "harness/statistics/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace assay::history {

namespace {

constexpr Night recent = 60;

struct Parts {
  std::vector<double> within, runs, nights, machines, runs_per_night;  // variances, of each series that shows them
  std::size_t series = 0;
};

std::optional<double> middle(const std::vector<double>& variances) {
  return variances.empty() ? std::nullopt : std::optional(std::sqrt(std::max(0.0, median(variances))));
}

// Adds what the points of recent nights show: variance within runs, between runs of a night, and runs per night.
void add_points(const store::Series& series, Night last, double sigma, Parts& to) {
  double within = 0, between = 0;
  std::size_t known = 0, degrees = 0, nights = 0, runs = 0;
  for (std::size_t first = 0, next = 0; first < series.points.size(); first = next) {
    double sum = 0, squares = 0;
    for (next = first; next < series.points.size() && series.points[next].night == series.points[first].night; ++next) {
      sum += series.points[next].log;
      if (series.points[first].night > last - recent && std::isfinite(series.points[next].within)) {
        within += std::pow(series.points[next].within / 1.96, 2);
        ++known;
      }
    }
    if (series.points[first].night <= last - recent) continue;
    const auto count = static_cast<double>(next - first);
    for (std::size_t i = first; i < next; ++i) squares += std::pow(series.points[i].log - sum / count, 2);
    between += squares;
    degrees += next - first - 1;
    runs += next - first;
    ++nights;
  }
  if (nights == 0) return;
  const double per_night = static_cast<double>(runs) / static_cast<double>(nights);
  const double inside = known > 0 ? within / static_cast<double>(known) : 0;
  const double of_runs = degrees > 0 ? between / static_cast<double>(degrees) : inside;
  to.runs_per_night.push_back(per_night);
  if (known > 0) to.within.push_back(inside);
  if (degrees > 0) to.runs.push_back(std::max(0.0, of_runs - inside));
  // A night's figure has the noise of nights, and that of runs over their number.
  if (sigma > 0) to.nights.push_back(std::max(0.0, sigma * sigma - of_runs / per_night));
}

std::string advice_for(const Variation& one) {
  const double within = one.within_run.value_or(0), nights = one.between_nights.value_or(0);
  const double runs = one.between_runs.value_or(0);
  if (!one.between_nights) return "too few nights to say";
  const auto from_to = [&](double now, double then) {
    return fmt::format("a night's noise would fall from {} to {}", format_percent(now), format_percent(then));
  };
  const double inner = runs * runs + within * within, all = std::sqrt(nights * nights + inner / one.runs_per_night);
  const double tripled = std::sqrt(nights * nights + inner / one.runs_per_night / 3);
  if (all == 0) return "no noise";
  if (tripled > 0.8 * all)
    return one.between_runs ? "nothing: nights differ more than runs and samples do"
                            : "unknown: two runs a night would show whether more runs help";
  if (within > runs) {
    const double fewer = std::sqrt(nights * nights + (runs * runs + within * within / 4) / one.runs_per_night);
    return "samples: with four times as many " + from_to(all, fewer);
  }
  return "runs: with three times as many a night " + from_to(all, tripled);
}

}  // namespace

std::vector<Variation> variations(const store::Contents& contents, const std::vector<TrackedSeries>& series,
                                  const std::vector<SeriesState>& states) {
  const Night last = last_night(series).value_or(0);
  std::map<std::string, Parts> families;
  std::unordered_map<std::int64_t, std::size_t> tracked;
  // A case on several machines: the recent median on each.
  std::map<std::tuple<std::string, std::string, std::string, int, std::string>, std::vector<double>> cases;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const store::SeriesIdentity& id = series[i].identity;
    ++families[id.family].series;
    tracked[series[i].newest] = i;
    const auto& track = series[i].track;
    const std::span recent_values = std::span(track.values).subspan(track.count_until(last - recent));
    if (!recent_values.empty())
      cases[{id.family, id.key, id.metric, id.ranks, id.device}].push_back(median(recent_values) + series[i].offset);
  }
  for (const store::Series& one : contents.series)
    if (const auto at = tracked.find(one.number); at != tracked.end())
      add_points(one, last, states[at->second].sigma, families[one.identity.family]);
  for (const auto& [key, medians] : cases)
    if (medians.size() > 1) families[std::get<0>(key)].machines.push_back(std::pow(robust_sigma(medians), 2));
  std::vector<Variation> all;
  for (const auto& [family, parts] : families) {
    Variation one;
    one.family = family;
    one.series = parts.series;
    one.within_run = middle(parts.within);
    one.between_runs = middle(parts.runs);
    one.between_nights = middle(parts.nights);
    one.between_machines = middle(parts.machines);
    if (!parts.runs_per_night.empty()) one.runs_per_night = median(parts.runs_per_night);
    one.advice = advice_for(one);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace assay::history
