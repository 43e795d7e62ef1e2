// The median of the members' residuals.
#include "harness/history/detect/groups.h"

#include <algorithm>
#include <limits>

namespace assay::history {

namespace {

constexpr Night epoch_nights = 28;    // between estimates of the members' medians
constexpr Night median_nights = 180;  // that these are taken of
constexpr Night known_nights = 240;   // before the epoch
constexpr std::size_t min_values = 7;

Night epoch_of(Night night) {
  const Night past = ((night % epoch_nights) + epoch_nights) % epoch_nights;
  return night - past;
}

}  // namespace

Track track_of(std::span<const Track> tracks, const Group& group, Night last) {
  const Night epoch = epoch_of(last), first = epoch - known_nights;
  std::vector<std::vector<double>> residuals(static_cast<std::size_t>(last - first + 1));
  std::vector<double> scratch;
  for (const std::size_t member : group.members) {
    const Track& track = tracks[member];
    std::vector<Night> generations = {first};
    for (const Night night : track.replaced) {
      if (night > first && night <= last) generations.push_back(night);
    }
    generations.push_back(last + 1);
    std::ranges::sort(generations);
    for (std::size_t g = 0; g + 1 < generations.size(); ++g) {
      const Night from = generations[g], until = generations[g + 1];
      const std::size_t low = track.index_of(std::max(from, epoch - median_nights)),
                        high = track.index_of(std::min(until, epoch));
      if (high < low + min_values) continue;
      scratch.assign(track.values.begin() + static_cast<std::ptrdiff_t>(low),
                     track.values.begin() + static_cast<std::ptrdiff_t>(high));
      const double centre = median_in_place(scratch);
      const std::size_t end = track.index_of(until);
      for (std::size_t i = track.index_of(from); i < end; ++i)
        residuals[static_cast<std::size_t>(track.nights[i] - first)].push_back(track.values[i] - centre);
    }
  }
  Track made;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    if (residuals[i].size() < min_members) continue;
    made.nights.push_back(first + static_cast<Night>(i));
    made.values.push_back(median_in_place(residuals[i]));
  }
  return made;
}

Track walk_group(std::span<const Track> tracks, const Group& group, const Options& options, Night first, Night last,
                 Walked& walked) {
  Night start = std::numeric_limits<Night>::max();
  for (const std::size_t member : group.members) {
    const std::vector<Night>& nights = tracks[member].nights;
    const auto found = std::ranges::lower_bound(nights, first);
    if (found != nights.end()) start = std::min(start, *found);
  }
  Track track;
  for (Night from = start; from <= last; from = epoch_of(from) + epoch_nights) {
    const Night epoch = epoch_of(from), until = std::min(last, epoch + epoch_nights - 1);
    track = track_of(tracks, group, until);
    const auto seen = std::ranges::lower_bound(track.nights, epoch);
    const bool refresh = seen == track.nights.end() || *seen >= first;
    if (!track.nights.empty())
      walk(track, options, {.first = std::max(from, first), .last = until, .refresh = refresh}, walked);
  }
  return start <= last ? track : track_of(tracks, group, last);
}

}  // namespace assay::history
