#include "harness/history/series/kept.h"

#include "harness/record/content_hash.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <optional>
#include <type_traits>

namespace assay::history {

namespace {

constexpr std::string_view form = "assay analysis 2";
constexpr const char* cache_name = "analysis";
// What is kept may lack this many nights: to analyse a few more costs less than to analyse twice.
constexpr Night max_behind = 14;

class Writer {
 public:
  template <typename T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view text) {
    put(static_cast<std::uint64_t>(text.size()));
    bytes_.append(text);
  }
  // With a checksum at the end.
  std::string sealed() {
    put(hash64(bytes_));
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

// Absent values: the bytes end early.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  std::optional<T> get() {
    if (bytes_.size() < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }
  std::optional<std::string_view> text() {
    const auto size = get<std::uint64_t>();
    if (!size || *size > bytes_.size()) return std::nullopt;
    const std::string_view text = bytes_.substr(0, *size);
    bytes_.remove_prefix(*size);
    return text;
  }

 private:
  std::string_view bytes_;
};

template <typename T>
std::string_view bytes_of(const std::vector<T>& values, std::size_t count) {
  return {reinterpret_cast<const char*>(values.data()), count * sizeof(T)};
}

std::size_t nights_until(const Track& track, Night last) {
  return static_cast<std::size_t>(std::upper_bound(track.nights.begin(), track.nights.end(), last) -
                                  track.nights.begin());
}

// Of everything about a series that its analysis up to `last` rests on.
std::uint64_t content(const TrackedSeries& series, Night last) {
  const std::size_t count = nights_until(series.track, last);
  std::uint64_t hash = hash64(bytes_of(series.track.nights, count), static_cast<std::uint64_t>(series.number));
  hash = hash64(bytes_of(series.track.values, count), hash);
  const auto& replaced = series.track.replaced;
  const auto until = std::upper_bound(replaced.begin(), replaced.end(), last) - replaced.begin();
  return hash64(bytes_of(replaced, static_cast<std::size_t>(until)), hash);
}

// The members that had a value by then: later ones change nothing before.
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
    return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
  };
  const auto is_change = [&](const Change& one) {
    return in_range(one.last_before) && one.last_before < one.first_after && in_range(one.first_after) &&
           in_range(one.suspected) && in_range(one.opened.value_or(last)) && in_range(one.closed.value_or(last)) &&
           finite({one.p, one.shift, one.interval.low, one.interval.high}) &&
           std::all_of(one.gaps.begin(), one.gaps.end(), [&](const Change::Gap& gap) {
             return in_range(gap.before) && gap.before < gap.after && in_range(gap.after) && finite({gap.weight});
           });
  };
  const auto& regimes = state.regimes;
  return (regimes.empty() ? state.changes.empty() : in_range(regimes.front()) && in_range(regimes.back())) &&
         std::adjacent_find(regimes.begin(), regimes.end(), std::greater_equal<>()) == regimes.end() &&
         std::all_of(state.changes.begin(), state.changes.end(), is_change) &&
         (!state.testing || (!state.changes.empty() && state.changes.back().first_after == regimes.back())) &&
         finite({state.sigma, state.correlation, state.spread, state.detectable.value_or(0)}) &&
         (!state.drift || finite({state.drift->shift, state.drift->interval.low, state.drift->interval.high})) &&
         std::all_of(state.excursions.begin(), state.excursions.end(),
                     [&](const SeriesState::Excursion& one) { return in_range(one.first) && in_range(one.last); });
}

template <typename Subject, typename Known>
bool read_states(Reader& in, std::vector<SeriesState>& to, std::span<const Subject> subjects, Night last, Known known) {
  const auto count = in.get<std::uint64_t>();
  if (!count || *count > subjects.size()) return false;
  for (std::size_t i = 0; i < *count; ++i) {
    const auto hash = in.get<std::uint64_t>();
    const auto bytes = in.text();
    const auto [content, first] = known(subjects[i]);
    if (!hash || !bytes || *hash != content) return false;
    if (!fits(to.emplace_back(state_of_bytes(*bytes)), first, last)) return false;
  }
  return true;
}

// Absent if it is not what these series and options had given up to some night.
std::optional<Kept> read_kept(std::string_view bytes, std::span<const TrackedSeries> series,
                              std::span<const TrackedGroup> groups, const Options& options) {
  std::uint64_t sum = 0;
  if (bytes.size() < sizeof sum) return std::nullopt;
  std::memcpy(&sum, bytes.end() - sizeof sum, sizeof sum);
  bytes.remove_suffix(sizeof sum);
  if (hash64(bytes) != sum) return std::nullopt;
  Reader in(bytes);
  Kept kept;
  if (in.text() != form || in.get<double>() != options.false_alarms || in.get<double>() != options.tolerance)
    return std::nullopt;
  const auto last = in.get<Night>();
  if (!last) return std::nullopt;
  kept.last = *last;
  try {
    const auto of_series = [&](const TrackedSeries& one) {
      return std::pair(content(one, *last), one.track.nights.front());
    };
    const auto of_group = [&](const TrackedGroup& one) {
      Night first = *last;
      for (const std::size_t member : one.group.members) first = std::min(first, series[member].track.nights.front());
      return std::pair(content(one, series, *last), first);
    };
    if (!read_states(in, kept.analysis.series, series, *last, of_series)) return std::nullopt;
    if (!read_states(in, kept.analysis.groups, groups, *last, of_group)) return std::nullopt;
  } catch (const Error&) {  // of another version of the detector
    return std::nullopt;
  }
  // Series and groups that are new must be new since.
  for (std::size_t i = kept.analysis.series.size(); i < series.size(); ++i)
    if (series[i].track.nights.front() <= *last) return std::nullopt;
  for (std::size_t i = kept.analysis.groups.size(); i < groups.size(); ++i) {
    const auto early = [&](std::size_t member) { return series[member].track.nights.front() <= *last; };
    if (std::count_if(groups[i].group.members.begin(), groups[i].group.members.end(), early) >= 5) return std::nullopt;
  }
  const auto nights = in.get<std::uint64_t>();
  for (std::uint64_t i = 0; nights && i < *nights; ++i) {
    const auto night = in.get<Night>();
    const auto tested = in.get<std::uint64_t>();
    const auto threshold = in.get<double>();
    const auto opened = in.get<std::uint64_t>();
    auto& known = kept.analysis.nights;
    if (!opened || (!known.empty() && *night <= known.back().night) || !std::isfinite(*threshold)) return std::nullopt;
    known.push_back({*night, *tested, *threshold, *opened});
  }
  if (!nights || *nights == 0 || kept.analysis.nights.back().night != kept.last) return std::nullopt;
  return kept;
}

// The nights of these series up to `last`.
std::vector<Track> tracks_until(std::span<const TrackedSeries> series, Night last) {
  std::vector<Track> tracks;
  for (const TrackedSeries& one : series) {
    const auto count = static_cast<std::ptrdiff_t>(nights_until(one.track, last));
    Track track{{one.track.nights.begin(), one.track.nights.begin() + count},
                {one.track.values.begin(), one.track.values.begin() + count}};
    for (const Night night : one.track.replaced)
      if (night <= last) track.replaced.push_back(night);
    tracks.push_back(std::move(track));
  }
  return tracks;
}

}  // namespace

std::string bytes_to_keep(const Analysis& analysis, Night last, std::span<const TrackedSeries> series,
                          std::span<const TrackedGroup> groups, const Options& options) {
  Writer out;
  out.text(form);
  out.put(options.false_alarms);
  out.put(options.tolerance);
  out.put(last);
  out.put(static_cast<std::uint64_t>(analysis.series.size()));
  for (std::size_t i = 0; i < analysis.series.size(); ++i) {
    out.put(content(series[i], last));
    out.text(to_bytes(analysis.series[i]));
  }
  out.put(static_cast<std::uint64_t>(analysis.groups.size()));
  for (std::size_t i = 0; i < analysis.groups.size(); ++i) {
    out.put(content(groups[i], series, last));
    out.text(to_bytes(analysis.groups[i]));
  }
  out.put(static_cast<std::uint64_t>(analysis.nights.size()));
  for (const NightSummary& night : analysis.nights) {
    out.put(night.night);
    out.put(static_cast<std::uint64_t>(night.tested));
    out.put(night.threshold);
    out.put(static_cast<std::uint64_t>(night.opened));
  }
  return out.sealed();
}

Analysis analyse_from(std::string& kept, std::span<const TrackedSeries> series, std::span<const TrackedGroup> groups,
                      const Options& options) {
  constexpr Night none = INT32_MIN;
  const Night before = night_before(series, last_night(series).value_or(none)).value_or(none);
  std::vector<Group> members;
  for (const TrackedGroup& group : groups) members.push_back(group.group);
  Analysis past;
  if (before != none) {
    auto known = read_kept(kept, series, groups, options);
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
  const std::string found = from_scratch ? std::string() : store.cached(cache_name, contents.revision).value_or("");
  std::string kept = found;
  Analysis analysis = analyse_from(kept, series, groups, options);
  if (kept != found) store.cache(cache_name, contents.revision, kept);
  return analysis;
}

}  // namespace assay::history
