#include "harness/history/renames.h"

#include "harness/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace assay::history {

namespace {

constexpr double same_speed = 0.1;  // logarithm of the ratio of figures

// Everything of an identity that a renamed case keeps.
auto kind_of(const store::SeriesIdentity& id) {
  return std::tuple(id.machine, id.device, id.ranks, id.nodes, id.metric, id.unit, id.better);
}

struct Match {
  double distance = 0;  // the largest of the case's series
  Rename rename;
};

}  // namespace

std::vector<Rename> seeming_renames(const History& history) {
  const Night last = history.arrival.last.value_or(0);
  std::map<decltype(kind_of(store::SeriesIdentity())), std::vector<std::size_t>> fresh;
  for (std::size_t i = 0; i < history.series.size(); ++i)
    if (const auto& nights = history.series[i].track.nights; nights.back() == last && nights.front() > last - week)
      fresh[kind_of(history.series[i].identity)].push_back(i);
  // Of each silent case, how far the series of each new one are from its own.
  std::map<std::string, std::map<std::string, std::vector<double>>> distances;
  std::map<std::string, std::size_t> parts;
  for (const std::size_t silent : history.arrival.silent) {
    const TrackedSeries& older = history.series[silent];
    ++parts[older.identity.key];
    const auto found = fresh.find(kind_of(older.identity));
    if (found == fresh.end()) continue;
    for (const std::size_t candidate : found->second) {
      const TrackedSeries& newer = history.series[candidate];
      if (newer.identity.key == older.identity.key || newer.track.nights.front() <= older.track.nights.back()) continue;
      const double far = std::abs(newer.track.values.front() + newer.offset - older.track.values.back() - older.offset);
      if (far <= std::max(same_speed, 3 * history.analysis.series[silent].sigma))
        distances[older.identity.key][newer.identity.key].push_back(far);
    }
  }
  std::vector<Match> matches;
  for (const auto& [from, all] : distances)
    for (const auto& [to, far] : all)
      if (far.size() >= parts.at(from)) matches.push_back({*std::ranges::max_element(far), {from, to}});
  std::ranges::stable_sort(matches, {}, &Match::distance);
  std::set<std::string> taken;
  std::vector<Rename> renames;
  for (const Match& one : matches)
    if (!taken.contains("from " + one.rename.from) && taken.insert("to " + one.rename.to).second) {
      taken.insert("from " + one.rename.from);
      renames.push_back(one.rename);
    }
  return renames;
}

std::string alias_command(const Rename& rename) {
  return fmt::format("assay history store alias {} {}", short_shell_word(rename.from), short_shell_word(rename.to));
}

}  // namespace assay::history
