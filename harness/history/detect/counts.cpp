#include "harness/history/detect/counts.h"

#include "harness/history/detect/noise.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace assay::history {

namespace {

constexpr std::size_t level_nights = 15;  // first nights of a regime, whose median is its level
constexpr double usual_moves = 4;

// The level of a regime, and how far from it a night must be.
struct Level {
  double value = 0;
  double least = 0;
};
Level level_of(std::span<const double> regime) {
  const double value = median_of(regime.first(std::min(regime.size(), level_nights)));
  const std::span<const double> last = regime.last(std::min(regime.size(), level_nights));
  std::vector<double> moves;
  for (std::size_t i = 1; i < last.size(); ++i) moves.push_back(std::abs(last[i] - last[i - 1]));
  return {value, std::max(std::log1p(count_tolerance), usual_moves * median_in_place(moves))};
}

}  // namespace

bool varies(const Track& track) {
  if (track.values.size() < count_nights) return false;
  std::size_t changes = 0;
  for (std::size_t i = 1; i < count_nights; ++i)
    changes += std::abs(track.values[i] - track.values[i - 1]) >= std::log1p(count_tolerance) ? 1 : 0;
  return changes >= 2;
}

void walk_count(const Track& track, const WalkRange& range, Walked& walked) {
  const std::span<const double> values(track.values);
  std::vector<Night>& regimes = walked.state.regimes;
  for (std::size_t i = track.index_of(range.first); i < values.size() && track.nights[i] <= range.last; ++i) {
    const Night night = track.nights[i];
    if (regimes.empty()) regimes.push_back(night);
    if (i > 0 && std::ranges::any_of(track.replaced, [&](Night at) { return track.nights[i - 1] < at && at <= night; }))
      regimes.push_back(night);
    const std::size_t start = track.index_of(regimes.back());
    if (i < count_nights || start == i) continue;
    walked.tested.push_back(night);
    const Level level = level_of(values.subspan(start, i - start));
    const double shift = values[i] - level.value;
    if (std::abs(shift) < level.least) continue;
    // A return to the level before the last change ends that change.
    if (regimes.size() > 1 && !walked.changes.empty()) {
      Change& last = walked.changes.back().change;
      const std::size_t origin = track.index_of(regimes[regimes.size() - 2]);
      const Level before = level_of(values.subspan(origin, start - origin));
      if (last.stage != Stage::recovered && last.first_after == regimes.back() &&
          night - last.first_after <= max_excursion && std::abs(values[i] - before.value) < before.least) {
        last.stage = Stage::recovered;
        last.closed = night;
        regimes.push_back(night);
        continue;
      }
    }
    walked.changes.push_back({.change = {.stage = Stage::small,
                                         .last_before = track.nights[i - 1],
                                         .first_after = night,
                                         .suspected = night,
                                         .p = 0,
                                         .shift = shift,
                                         .interval = {shift, shift},
                                         .gaps = {{track.nights[i - 1], night, 1.0}}}});
    regimes.push_back(night);
    walked.trials.push_back(
        {.night = night, .change = walked.changes.size() - 1, .p = 0, .shift = shift, .exact = true});
  }
  walked.state.settled = walked.state.noise_until = regimes.empty() ? 0 : regimes.back();
}

}  // namespace assay::history
