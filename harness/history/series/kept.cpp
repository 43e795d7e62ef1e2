#include "harness/history/series/kept.h"

#include "harness/history/bytes.h"
#include "harness/record/content_hash.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <optional>
#include <utility>

namespace assay::history {

namespace {

constexpr std::string_view form = "assay analysis 3";
const std::string cache_name = "analysis";
// What is kept may lack this many nights: to analyse a few more costs less than to analyse twice.
constexpr Night max_behind = 14;

template <typename T>
std::string_view bytes_of(const std::vector<T>& values, std::size_t count) {
  return {reinterpret_cast<const char*>(values.data()), count * sizeof(T)};
}

// A hash of everything about a series that its analysis up to `last` rests on.
std::uint64_t content(const TrackedSeries& series, Night last) {
  const std::size_t count = series.track.count_until(last);
  std::uint64_t hash = hash64(bytes_of(series.track.nights, count), static_cast<std::uint64_t>(series.number));
  hash = hash64(bytes_of(series.track.values, count), hash);
  const auto& replaced = series.track.replaced;
  const auto until = std::ranges::upper_bound(replaced, last) - replaced.begin();
  return hash64(bytes_of(replaced, static_cast<std::size_t>(until)), hash);
}

// A hash of the members that had a value by then: later ones change nothing before.
std::uint64_t content(const TrackedGroup& group, std::span<const TrackedSeries> series, Night last) {
  std::uint64_t hash = hash64(group.name);
  for (const std::size_t member : group.group.members)
    if (series[member].track.nights.front() <= last)
      hash = hash64({reinterpret_cast<const char*>(&series[member].number), sizeof(std::int64_t)}, hash);
  return hash;
}

struct Kept {
  Night last = 0;
  Analysis analysis;
};

// Whether an analysis of nights from `first` to `last` may have given it, as far as going on from it rests on that.
bool fits(const SeriesState& state, Night first, Night last) {
  const auto in_range = [&](Night night) { return first <= night && night <= last; };
  const auto finite = [](std::initializer_list<double> values) {
    return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
  };
  const auto is_change = [&](const Change& one) {
    return in_range(one.last_before) && one.last_before < one.first_after && in_range(one.first_after) &&
           in_range(one.suspected) && in_range(one.opened.value_or(last)) && in_range(one.closed.value_or(last)) &&
           finite({one.p, one.shift, one.interval.low, one.interval.high}) &&
           std::ranges::all_of(one.gaps, [&](const Change::Gap& gap) {
             return in_range(gap.before) && gap.before < gap.after && in_range(gap.after) && finite({gap.weight});
           });
  };
  const auto& regimes = state.regimes;
  return (regimes.empty() ? state.changes.empty() : in_range(regimes.front()) && in_range(regimes.back())) &&
         std::ranges::adjacent_find(regimes, std::greater_equal<>()) == regimes.end() &&
         std::ranges::all_of(state.changes, is_change) &&
         (!state.testing || (!state.changes.empty() && state.changes.back().first_after == regimes.back())) &&
         finite({state.sigma, state.correlation, state.spread, state.detectable.value_or(0)}) &&
         (!state.drift || finite({state.drift->shift, state.drift->interval.low, state.drift->interval.high})) &&
         std::ranges::all_of(state.excursions, [&](const SeriesState::Excursion& one) {
           return in_range(one.first) && in_range(one.last);
         });
}

// Throws DataError if they are not the states of these subjects. `known` gives what a state rests on, and its first
// night.
template <typename Subject, typename Known>
void read_states(ByteReader& in, std::vector<SeriesState>& to, std::span<const Subject> subjects, Night last,
                 Known known) {
  const auto count = in.get<std::uint64_t>();
  if (count > subjects.size()) throw DataError("more states than series");
  for (std::size_t i = 0; i < count; ++i) {
    const auto [content, first] = known(subjects[i]);
    if (in.get<std::uint64_t>() != content || !fits(to.emplace_back(state_of_bytes(in.text())), first, last))
      throw DataError("the state of another series");
  }
}

// Throws DataError if it is not what these series and options had given up to some night.
Kept read_kept(std::string_view bytes, std::span<const TrackedSeries> series, std::span<const TrackedGroup> groups,
               const Options& options) {
  const auto need = [](bool right) {
    if (!right) throw DataError("not the analysis of this history");
  };
  std::uint64_t sum = 0;
  need(bytes.size() >= sizeof sum);
  std::memcpy(&sum, bytes.end() - sizeof sum, sizeof sum);
  bytes.remove_suffix(sizeof sum);
  need(hash64(bytes) == sum);
  ByteReader in(bytes);
  need(in.text() == form && in.get<double>() == options.false_alarms && in.get<double>() == options.tolerance);
  Kept kept;
  const Night last = kept.last = in.get<Night>();
  read_states(in, kept.analysis.series, series, last,
              [&](const TrackedSeries& one) { return std::pair(content(one, last), one.track.nights.front()); });
  read_states(in, kept.analysis.groups, groups, last, [&](const TrackedGroup& one) {
    Night first = last;
    for (const std::size_t member : one.group.members) first = std::min(first, series[member].track.nights.front());
    return std::pair(content(one, series, last), first);
  });
  // Series and groups that are new must be new since.
  const auto early = [&](std::size_t member) { return series[member].track.nights.front() <= last; };
  for (std::size_t i = kept.analysis.series.size(); i < series.size(); ++i) need(!early(i));
  for (std::size_t i = kept.analysis.groups.size(); i < groups.size(); ++i) {
    const auto& members = groups[i].group.members;
    need(std::ranges::count_if(members, early) < 5);
  }
  auto& nights = kept.analysis.nights;
  for (auto left = in.get<std::uint64_t>(); left > 0; --left) {
    const auto night = in.get<Night>();
    need(nights.empty() || night > nights.back().night);
    NightSummary& summary = nights.emplace_back(NightSummary{.night = night});
    in(summary.tested), in(summary.threshold), in(summary.opened);
    need(std::isfinite(summary.threshold));
  }
  need(!nights.empty() && nights.back().night == last);
  return kept;
}

// The nights of these series up to `last`.
std::vector<Track> tracks_until(std::span<const TrackedSeries> series, Night last) {
  std::vector<Track> tracks;
  for (const TrackedSeries& one : series) {
    const auto count = static_cast<std::ptrdiff_t>(one.track.count_until(last));
    Track track{{one.track.nights.begin(), one.track.nights.begin() + count},
                {one.track.values.begin(), one.track.values.begin() + count},
                {},
                one.track.count};
    for (const Night night : one.track.replaced)
      if (night <= last) track.replaced.push_back(night);
    tracks.push_back(std::move(track));
  }
  return tracks;
}

}  // namespace

std::string bytes_to_keep(const Analysis& analysis, Night last, std::span<const TrackedSeries> series,
                          std::span<const TrackedGroup> groups, const Options& options) {
  ByteWriter out;
  out.text(form);
  out(options.false_alarms), out(options.tolerance), out(last);
  const auto states = [&](const std::vector<SeriesState>& all, auto content_of) {
    out(std::uint64_t{all.size()});
    for (std::size_t i = 0; i < all.size(); ++i) out(content_of(i)), out.text(to_bytes(all[i]));
  };
  states(analysis.series, [&](std::size_t i) { return content(series[i], last); });
  states(analysis.groups, [&](std::size_t i) { return content(groups[i], series, last); });
  out(std::uint64_t{analysis.nights.size()});
  for (const NightSummary& night : analysis.nights)
    out(night.night), out(night.tested), out(night.threshold), out(night.opened);
  out(hash64(out.bytes()));
  return out.bytes();
}

Analysis analyse_from(std::string& kept, std::span<const TrackedSeries> series, std::span<const TrackedGroup> groups,
                      const Options& options) {
  constexpr Night none = INT32_MIN;
  const Night before = night_before(series, last_night(series).value_or(none)).value_or(none);
  std::vector<Group> members;
  for (const TrackedGroup& group : groups) members.push_back(group.group);
  Analysis past;
  if (before != none) {
    std::optional<Kept> known;
    try {
      known = read_kept(kept, series, groups, options);
    } catch (const Error&) {  // of other values, of another version, or damaged: all nights are analysed again
    }
    if (known && known->last <= before && before - known->last <= max_behind) {
      past = std::move(known->analysis);
    } else {
      // Series and groups begin in the order of their numbers, but not all by then.
      std::size_t began = series.size();
      while (began > 0 && series[began - 1].track.nights.front() > before) --began;
      std::vector<Group> formed;
      for (const Group& group : members) {
        if (group.members[4] >= began) break;
        Group so_far;
        for (const std::size_t member : group.members)
          if (member < began) so_far.members.push_back(member);
        formed.push_back(std::move(so_far));
      }
      past = analyse(tracks_until(series.first(began), before), formed, options,
                     known && known->last < before ? std::move(known->analysis) : Analysis{});
      kept = bytes_to_keep(past, before, series, groups, options);
    }
  }
  std::vector<Track> tracks;
  for (const TrackedSeries& one : series) tracks.push_back(one.track);
  return analyse(tracks, members, options, std::move(past));
}

Analysis analyse_store(store::Store& store, const store::Contents& contents, std::span<const TrackedSeries> series,
                       std::span<const TrackedGroup> groups, const Options& options, bool from_scratch) {
  const std::string name = cache_name + (options.split_by.empty() ? "" : " by " + options.split_by) +
                           (options.commits.empty() ? "" : " in the order of commits");
  const std::string found = from_scratch ? std::string() : store.cached(name, contents.revision).value_or("");
  std::string kept = found;
  Analysis analysis = analyse_from(kept, series, groups, options);
  if (kept != found) store.cache(name, contents.revision, kept);
  return analysis;
}

}  // namespace assay::history
