// What is said of a series after its last night.
#include "harness/history/detect/counts.h"
#include "harness/history/detect/detectable.h"
#include "harness/history/detect/regimes.h"
#include "harness/history/detect/split_track.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay::history {

namespace {

constexpr std::size_t max_tonight = 5;  // nights that a step beyond anything seen may be old without being split off
constexpr double suspect_deviations = 3.5;  // few nights have a small range by chance
constexpr std::size_t drift_first = 60;
constexpr std::size_t drift_last = 30;
constexpr double drift_p = 1e-4;
constexpr double infinity = std::numeric_limits<double>::infinity();

// A step in the last one to five nights, beyond anything seen.
std::optional<Change> step_tonight(SplitTrack& split, const Options& options) {
  const std::span<const double> values = split.values();
  const std::vector<Night>& nights = split.track().nights;
  const std::size_t end = values.size(), now = end - 1, regime = split.starts().size() - 1;
  const std::size_t start = std::max(split.starts().back(), split.settled());
  // The first that fits: the reference must hold no night of the step itself.
  const std::size_t first = std::max(start + min_recent, now - std::min(now, max_tonight)) + 1;
  for (std::size_t at = first; at <= now; ++at) {
    const std::span<const double> earlier = split.before(split.starts().back(), at);
    const Reference reference(earlier, split.older_than(regime));
    if (reference.size() < min_nights) continue;
    const double bound =
        std::max({options.tolerance, split.largest_excursion(reference), suspect_deviations * reference.sigma()});
    const bool up = values[now] > reference.centre();
    const auto is_beyond = [&](double x) { return (up ? 1 : -1) * (x - reference.centre()) > bound; };
    if (!std::ranges::all_of(split.between(at, end), is_beyond)) continue;
    if (is_beyond(values[at - 1])) return {};
    const Keys keys = test_step(split.between(at, end), earlier, reference, split.factors(), infinity);
    const Shift shift = hodges_lehmann(split.between(at, end), earlier, keys.inflation);
    return Change{.last_before = nights[at - 1],
                  .first_after = nights[at],
                  .suspected = nights[at],
                  .p = std::min(1.0, placed_tests * keys.p()),
                  .shift = shift.value,
                  .interval = shift.interval,
                  .same_night = true,
                  .gaps = {{nights[at - 1], nights[at], 1.0}}};
  }
  return {};
}

// Small steps are part of a drift.
std::optional<Drift> drift_since(const SplitTrack& split, Night since, double tolerance) {
  const std::size_t start = split.index_of(since), end = split.values().size();
  if (end < start + drift_first + drift_last) return {};
  const std::span<const double> first = split.between(start, start + drift_first),
                                last = split.between(end - drift_last, end);
  // A drift makes neighbouring nights alike: their correlation is that within blocks, each with its own median.
  const std::size_t known = std::min(end - start, noise_values);
  const VarianceFactors factors(correlation_within(split.between(end - known, end), drift_first));
  const Reference reference(first, {});
  const Keys keys = test_step(last, first, reference, factors, drift_p);
  if (keys.p() > drift_p) return {};
  const Shift shift = hodges_lehmann(last, first, keys.inflation);
  if (std::abs(shift.value) < tolerance) return {};
  return Drift{shift.value, shift.interval, split.track().nights[start]};
}

// The first night of the regime in force, if small changes start no regime.
Night drift_start(const SeriesState& state) {
  for (std::size_t k = state.regimes.size(); k-- > 0;) {
    const bool is_small = std::ranges::any_of(state.changes, [&](const Change& change) {
      return change.stage == Stage::small && change.first_after == state.regimes[k];
    });
    if (!is_small) return state.regimes[k];
  }
  return state.regimes.front();
}

}  // namespace

std::optional<Comparison> compare(const Track& track, const SeriesState& state, std::span<const double> nights,
                                  const Options& options, std::size_t tests) {
  if (state.regimes.empty() || nights.empty()) return {};
  nights = nights.last(std::min(nights.size(), max_recent));
  SeriesState copy = state;
  SplitTrack split(track, copy);
  const std::size_t regime = split.starts().size() - 1;
  const std::span<const double> earlier = split.before(split.starts().back(), split.values().size());
  const Reference reference(earlier, split.older_than(regime));
  if (earlier.size() < min_recent || reference.size() < min_nights) return {};
  const Keys keys = test_step(nights, earlier, reference, split.factors(), infinity);
  const Shift shift = hodges_lehmann(nights, earlier, keys.inflation);
  // Key 2 counts as it is: of few nights, its power of 1.5 would be too small.
  const double p = std::max(keys.p_scores, keys.p_likelihood);
  const Trial trial =
      split.trial(p, shift.value, regime, earlier, nights, static_cast<Night>(nights.size()), track.nights.back(), 0);
  // A stay on the other side shows as well that this series makes some.
  const std::size_t stay = longest_run(earlier, split.older_than(regime), -shift.value);
  return Comparison{.shift = shift.value,
                    .interval = shift.interval,
                    .p = p,
                    .may_alarm = nights.size() > run_times * stay && may_alarm(trial, options, tests),
                    .beyond = std::abs(shift.value) > split.largest_excursion(reference)};
}

void conclude(const Track& track, const Options& options, const NightSummary& night, SeriesState& state) {
  if (track.nights.empty()) return;
  if (track.count && !varies(track)) {
    state.detectable.reset();
    if (track.nights.size() >= count_nights) state.detectable = std::log1p(count_tolerance);
    return;
  }
  state.detectable.reset();
  if (track.nights.size() >= min_nights)
    state.detectable = detectable_step(state.sigma, state.spread, options, night.tested);
  state.flaky = is_flaky(is_unsteady(state, track.nights.back()), state.detectable ? state.sigma : 0, state.spread,
                         options, night.tested);
  state.drift.reset();
  // The exact tests need the noise; most series are clearly quiet.
  const std::size_t n = track.values.size();
  const auto level = [&](std::size_t first, std::size_t count) {
    return median_of(std::span(track.values).subspan(first, count));
  };
  const Night since = drift_start(state);
  const std::size_t start = track.index_of(since);
  const bool may_drift =
      n - start >= drift_first + 2 * drift_last &&
      std::abs(level(n - drift_last, drift_last) - level(start, drift_first)) > 0.5 * options.tolerance;
  const bool may_step =
      n >= min_nights && track.nights.back() == night.night &&
      std::abs(track.values.back() - level(n - min_nights, min_nights)) > std::max(options.tolerance, 2 * state.sigma);
  if (!may_drift && !may_step) return;
  SplitTrack split(track, state);
  if (may_drift) state.drift = drift_since(split, since, options.tolerance);
  if (!may_step) return;
  if (const auto step = step_tonight(split, options)) state.changes.push_back(*step);
}

}  // namespace assay::history
