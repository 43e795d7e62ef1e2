#include "harness/history/series/tracked.h"

#include "harness/core/glob.h"
#include "harness/history/store/counts.h"
#include "harness/statistics/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace assay::history {

namespace {

// One series of the store, a value per night.
struct Nightly {
  std::vector<Night> nights;
  std::vector<double> values;
  std::vector<std::int32_t> runs, choices;

  void add(Night night, double value, std::int32_t run, std::int32_t chosen) {
    nights.push_back(night);
    values.push_back(value);
    runs.push_back(run);
    choices.push_back(chosen);
  }
};

Nightly nightly(const store::Series& series, const std::unordered_map<std::int64_t, std::int32_t>& run_index) {
  const double sign = series.identity.better == Better::higher ? 1 : -1;
  Nightly all;
  std::vector<double> clean, every;
  for (std::size_t first = 0, next = 0; first < series.points.size(); first = next) {
    if (series.points[first].weekly) {
      next = first + 1;
      continue;
    }
    clean.clear(), every.clear();
    const Night night = series.points[first].night;
    for (next = first; next < series.points.size() && series.points[next].night == night; ++next) {
      every.push_back(sign * series.points[next].log);
      if (!series.points[next].disturbed) clean.push_back(every.back());
    }
    const store::Point& last = series.points[next - 1];
    all.add(night, median(clean.empty() ? every : clean), run_index.at(last.run), last.choices);
  }
  return all;
}

// How much larger the values of `later` are on the nights that have both; absent if none has.
std::optional<double> offset_between(const Nightly& so_far, const Nightly& later) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < later.nights.size(); ++i) {
    const auto at = std::ranges::lower_bound(so_far.nights, later.nights[i]);
    const bool common = at != so_far.nights.end() && *at == later.nights[i];
    if (common)
      differences.push_back(later.values[i] - so_far.values[static_cast<std::size_t>(at - so_far.nights.begin())]);
    else if (!differences.empty())
      break;  // only nights before the first without the older one: what is known of past nights stays
  }
  return differences.empty() ? std::nullopt : std::optional(median(differences));
}

Nightly joined(const Nightly& so_far, const Nightly& later, double offset) {
  Nightly all;
  std::size_t a = 0, b = 0;
  const auto take = [&](const Nightly& from, std::size_t& i, double shift) {
    all.add(from.nights[i], from.values[i] - shift, from.runs[i], from.choices[i]);
    ++i;
  };
  while (a < so_far.nights.size() || b < later.nights.size()) {
    if (b == later.nights.size() || (a < so_far.nights.size() && so_far.nights[a] <= later.nights[b])) {
      if (b < later.nights.size() && so_far.nights[a] == later.nights[b]) ++b;
      take(so_far, a, 0);
    } else {
      take(later, b, offset);
    }
  }
  return all;
}

std::string machine_name(const std::string& machine) { return machine.empty() ? "unknown machine" : machine; }

std::string title_of(const store::Series& series) {
  return series.name.empty() ? series.identity.key + ", " + series.identity.metric : series.name;
}

// Nights on which a machine first ran with other hardware.
std::map<std::string, std::vector<Night>> replacements(const store::Contents& contents) {
  std::map<std::string, std::vector<Night>> nights;
  std::map<std::string, std::string> hardware;
  for (const store::Run& run : contents.runs) {
    if (run.hardware.empty()) continue;
    std::string& known = hardware[run.machine];
    if (!known.empty() && known != run.hardware) {
      auto& of_machine = nights[run.machine];
      if (of_machine.empty() || of_machine.back() != run.night) of_machine.push_back(run.night);
    }
    known = run.hardware;
  }
  return nights;
}

// For each series, the chain that it ends, as indices, oldest first. A series that another continues ends none; if
// several continue it, the first does.
std::vector<std::vector<std::size_t>> chains(const store::Contents& contents) {
  std::unordered_map<std::int64_t, std::size_t> by_number;
  for (std::size_t i = 0; i < contents.series.size(); ++i) by_number[contents.series[i].number] = i;
  std::vector<bool> continued(contents.series.size(), false);
  const auto before = [&](std::size_t i) -> std::optional<std::size_t> {
    const auto& older = contents.series[i].successor_of;
    const auto at = older ? by_number.find(*older) : by_number.end();
    return at == by_number.end() || at->second == i ? std::nullopt : std::optional(at->second);
  };
  for (std::size_t i = 0; i < contents.series.size(); ++i)
    if (const auto older = before(i)) continued[*older] = true;
  std::vector<bool> taken(contents.series.size(), false);
  std::vector<std::vector<std::size_t>> all;
  for (std::size_t i = 0; i < contents.series.size(); ++i) {
    if (continued[i]) continue;
    std::vector<std::size_t> chain{i};
    for (auto older = before(i); older && !taken[*older]; older = before(*older)) {
      taken[*older] = true;
      chain.push_back(*older);
    }
    std::ranges::reverse(chain);
    all.push_back(std::move(chain));
  }
  return all;
}

}  // namespace

double TrackedSeries::figure(double value) const {
  return store::figure_of(identity, (value + offset) * (identity.better == Better::higher ? 1 : -1));
}

std::optional<std::size_t> TrackedSeries::at_or_before(Night night) const {
  const std::size_t count = track.count_until(night);
  return count == 0 ? std::nullopt : std::optional(count - 1);
}

std::optional<std::size_t> TrackedSeries::at_or_after(Night night) const {
  const std::size_t at = track.index_of(night);
  return at == track.nights.size() ? std::nullopt : std::optional(at);
}

std::string series_name(const store::Series& series) {
  return fmt::format("{}: {}", machine_name(series.identity.machine), title_of(series));
}

std::vector<TrackedSeries> tracked_series(const store::Contents& contents) {
  std::unordered_map<std::int64_t, std::int32_t> run_index;
  for (std::size_t i = 0; i < contents.runs.size(); ++i)
    run_index[contents.runs[i].number] = static_cast<std::int32_t>(i);
  const auto replaced = replacements(contents);
  std::vector<TrackedSeries> all;
  std::map<std::int64_t, std::int64_t> follows;  // numbers: a series, and the one that it follows unbridged
  for (const auto& chain : chains(contents)) {
    Nightly values;
    double offset = 0;
    std::vector<std::size_t> parts;
    const auto finish = [&] {
      if (parts.empty() || values.nights.empty()) return;
      const store::Series& newest = contents.series[parts.back()];
      TrackedSeries one;
      one.number = one.newest = newest.number;
      for (const std::size_t part : parts) one.number = std::min(one.number, contents.series[part].number);
      one.identity = newest.identity;
      one.title = title_of(newest);
      one.name = series_name(newest);
      for (const std::size_t part : parts)
        if (const store::Series& older = contents.series[part]; !older.former.empty())
          one.former.push_back(fmt::format("{}: {}", machine_name(older.identity.machine), older.former));
      one.offset = offset;
      one.track = {std::move(values.nights), std::move(values.values), {}, store::is_count(one.identity)};
      one.runs = std::move(values.runs);
      one.choices = std::move(values.choices);
      if (const auto nights = replaced.find(one.identity.machine); nights != replaced.end())
        for (const Night night : nights->second)
          if (night > one.track.nights.front()) one.track.replaced.push_back(night);
      all.push_back(std::move(one));
    };
    for (const std::size_t part : chain) {
      Nightly later = nightly(contents.series[part], run_index);
      if (later.nights.empty()) continue;
      if (parts.empty()) {
        values = std::move(later);
      } else {
        const bool same = contents.series[parts.back()].identity.protocol == contents.series[part].identity.protocol;
        if (const auto between = same ? std::optional(offset) : offset_between(values, later)) {
          values = joined(values, later, *between);
          offset = *between;
        } else {
          finish();
          follows[contents.series[part].number] = all.back().number;
          parts.clear();
          values = std::move(later);
          offset = 0;
        }
      }
      parts.push_back(part);
    }
    finish();
  }
  std::ranges::sort(all, {}, &TrackedSeries::number);
  for (TrackedSeries& one : all)
    if (const auto older = follows.find(one.number); older != follows.end()) {
      const auto at = std::ranges::lower_bound(all, older->second, {}, &TrackedSeries::number);
      if (at != all.end() && at->number == older->second) one.unbridged = static_cast<std::size_t>(at - all.begin());
    }
  return all;
}

SeriesNames::SeriesNames(std::span<const TrackedSeries> series) : series_(series) {
  for (std::size_t i = 0; i < series.size(); ++i) by_name_.emplace(series[i].name, i);
  for (std::size_t i = 0; i < series.size(); ++i)
    for (const std::string& name : series[i].former) by_name_.emplace(name, i);
}

std::optional<std::size_t> SeriesNames::across(const std::string& name, Night last_before, Night first_after) const {
  for (auto [at, end] = by_name_.equal_range(name); at != end; ++at)
    if (series_[at->second].at_or_before(last_before) && series_[at->second].at_or_after(first_after))
      return at->second;
  return std::nullopt;
}

std::vector<TrackedGroup> tracked_groups(const std::vector<TrackedSeries>& series) {
  enum class Kind { machine_family, machine, fleet };
  std::map<std::tuple<Kind, std::string, std::string>, TrackedGroup> groups;
  const auto add = [&](Kind kind, const std::string& a, const std::string& b, const std::string& name, std::size_t i) {
    TrackedGroup& group = groups[{kind, a, b}];
    group.name = name;
    group.group.members.push_back(i);
  };
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (series[i].track.count) continue;  // a group would hide how exact they are
    const store::SeriesIdentity& id = series[i].identity;
    const std::string machine = machine_name(id.machine);
    add(Kind::machine_family, id.machine, id.family, fmt::format("{} on {}", id.family, machine), i);
    add(Kind::machine, id.machine, "", machine, i);
    const std::string place = fmt::format("{}/{}/{}/{}/{}", id.device, id.ranks, id.nodes, id.metric, id.conditions);
    add(Kind::fleet, id.key, place, series[i].title + " on all machines", i);
  }
  std::vector<std::pair<std::size_t, TrackedGroup>> large;
  for (auto& [key, group] : groups)
    if (group.group.members.size() >= min_members)
      large.emplace_back(group.group.members[min_members - 1], std::move(group));
  std::ranges::stable_sort(large, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<TrackedGroup> all;
  for (auto& [fifth, group] : large) all.push_back(std::move(group));
  return all;
}

std::optional<Night> last_night(std::span<const TrackedSeries> series) {
  std::optional<Night> last;
  for (const TrackedSeries& one : series) last = std::max(last.value_or(INT32_MIN), one.track.nights.back());
  return last;
}

std::optional<Night> night_before(std::span<const TrackedSeries> series, Night night) {
  std::optional<Night> before;
  for (const TrackedSeries& one : series)
    if (const auto at = one.at_or_before(night - 1))
      before = std::max(before.value_or(INT32_MIN), one.track.nights[*at]);
  return before;
}

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.find_first_of("*?") == std::string_view::npos) return name.find(pattern) != std::string_view::npos;
  return glob_matches(pattern, name, [](char p, char n) { return p == '?' || p == n; });
}

}  // namespace assay::history
