// One series' life: lenient splits, nightly tests of the last one, and merging back.
#include "reports/history/detect/regimes.h"

#include <boost/math/distributions/normal.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay::history {

namespace {

constexpr std::size_t windows[] = {4, 5, 7, 10, 14, 20, 28, 40, 56};
constexpr std::size_t min_recent = 4;
constexpr double split_p = 1e-3;    // of a split, times window_tests
constexpr double window_tests = 4;  // the windows overlap: nine of them count as four tests
constexpr double merge_p = 0.1;
constexpr double recovered_share = 0.35;
constexpr Night max_excursion = 45;  // nights
constexpr Night unsteady_nights = 90;
constexpr Night memory = 365;  // of excursions
constexpr std::size_t noise_values = 240;
constexpr std::size_t left_out = 28;  // the last values, which a step that is not found yet may have shifted
constexpr double gate_p = 0.02;       // of key 2 with noise known only as of the last estimate
constexpr std::size_t min_reference = 7;
constexpr std::size_t max_tonight = 5;  // nights that a step beyond anything seen may be old without being split off
constexpr double beyond = 1.2;          // times the largest distance seen
constexpr std::size_t min_known = 15;
constexpr std::size_t drift_first = 60;
constexpr std::size_t drift_last = 30;
constexpr double drift_p = 1e-4;
constexpr std::size_t max_outliers = 3;  // nights in a row that are no step
constexpr std::size_t run_times = 2;     // a step must last longer than this times the longest such run

bool is_replaced(const Track& track, std::size_t i) {
  return i > 0 && std::any_of(track.replaced.begin(), track.replaced.end(),
                              [&](Night night) { return track.nights[i - 1] < night && night <= track.nights[i]; });
}

// Whether the noise is estimated anew with so many values in a regime: often while they are few.
bool is_estimate_due(std::size_t values) {
  if (values >= 112) return values % 28 == 0;
  if (values >= 28) return values % 14 == 0;
  return values >= 8 && values % 4 == 0;
}

bool is_unsteady(const SeriesState& state, Night night) {
  return std::count_if(state.excursions.begin(), state.excursions.end(), [&](const SeriesState::Excursion& excursion) {
           return night - excursion.last <= unsteady_nights;
         }) >= 2;
}

class Walker {
 public:
  Walker(const Track& track, const Options& options, Walked& walked)
      : track_(track), options_(options), walked_(walked) {
    const std::vector<Night>& regimes = state().regimes;
    // Of a group's regimes, those before the first night that is still known count as one.
    for (const Night night : regimes) {
      const std::size_t at = std::min(index_of(night), track.nights.size() - 1);
      if (starts_.empty() || at > starts_.back()) {
        starts_.push_back(at);
      } else {
        ++hidden_;
        starts_.back() = at;
      }
    }
    if (testing() && (starts_.size() < 2 || starts_.back() < starts_[starts_.size() - 2] + min_recent)) accept();
    settled_ = index_of(state().settled);
    use_noise(starts_.empty() ? 0 : index_of(state().noise_until));
  }

  void run(const WalkRange& range) {
    std::size_t i = index_of(range.first);
    if (i < track_.nights.size() && track_.nights[i] <= range.last && range.refresh && !starts_.empty()) {
      now_ = i;
      estimate_noise();
    }
    for (; i < track_.nights.size() && track_.nights[i] <= range.last; ++i) step(i);
    if (settled_ < track_.nights.size()) state().settled = track_.nights[settled_];
    keep_regimes();
  }

  // A step in the last one to five nights, beyond anything seen.
  std::optional<Change> tonight() {
    const std::size_t end = track_.nights.size();
    now_ = end - 1;
    if (testing()) return {};
    const std::size_t regime = starts_.size() - 1, start = std::max(starts_.back(), settled_);
    for (std::size_t at = now_; at > start + min_recent && at + max_tonight > now_; --at) {
      const std::span<const double> earlier = before(starts_.back(), at);
      const Reference reference(earlier, older_than(regime));
      if (reference.size() < min_known) return {};
      const double bound = std::max(options_.tolerance, beyond * reference.largest());
      const bool up = values()[now_] > reference.centre();
      const auto is_beyond = [&](double x) { return (up ? 1 : -1) * (x - reference.centre()) > bound; };
      if (!is_beyond(values()[at])) return {};
      if (is_beyond(values()[at - 1])) continue;
      const Keys keys =
          test_step(between(at, end), earlier, reference, factors_, std::numeric_limits<double>::infinity());
      const Shift shift = hodges_lehmann(between(at, end), earlier, keys.inflation);
      const Night last_before = track_.nights[at - 1], first_after = track_.nights[at];
      return Change{.last_before = last_before,
                    .first_after = first_after,
                    .suspected = first_after,
                    .p = std::min(1.0, placed_tests * keys.p()),
                    .shift = shift.value,
                    .interval = shift.interval,
                    .same_night = true,
                    .gaps = {{last_before, first_after, 1.0}}};
    }
    return {};
  }

  // Since `start`: small steps are part of a drift.
  std::optional<Drift> drift(std::size_t start) {
    const std::size_t end = track_.nights.size();
    const std::span<const double> first = between(start, start + drift_first), last = between(end - drift_last, end);
    // A drift makes neighbouring nights alike: their correlation is that within blocks, each with its own median.
    const std::size_t known = std::min(end - start, noise_values);
    const VarianceFactors factors(correlation_within(between(end - known, end), drift_first));
    const Reference reference(first, {});
    const Keys keys = test_step(last, first, reference, factors, drift_p);
    if (keys.p() > drift_p) return {};
    const Shift shift = hodges_lehmann(last, first, keys.inflation);
    if (std::abs(shift.value) < options_.tolerance) return {};
    return Drift{shift.value, shift.interval, track_.nights[start]};
  }

 private:
  SeriesState& state() { return walked_.state; }
  std::span<const double> values() const { return track_.values; }
  std::span<const double> between(std::size_t first, std::size_t last) const {
    return values().subspan(first, last - first);
  }
  std::size_t index_of(Night night) const {
    return static_cast<std::size_t>(std::lower_bound(track_.nights.begin(), track_.nights.end(), night) -
                                    track_.nights.begin());
  }
  // At most max_reference values of a regime before `last`.
  std::span<const double> before(std::size_t start, std::size_t last) const {
    return between(std::max(start, last > max_reference ? last - max_reference : 0), last);
  }
  std::size_t min_before(std::size_t recent, std::size_t regime) const {
    return regime > 0 ? min_recent : std::max<std::size_t>(7, recent / 2);
  }

  void keep_regimes() {
    std::vector<Night>& regimes = state().regimes;
    regimes.resize(hidden_);
    for (const std::size_t start : starts_) regimes.push_back(track_.nights[start]);
  }

  void step(std::size_t i) {
    now_ = i;
    if (starts_.empty()) starts_.push_back(i);
    if (is_replaced(track_, i)) replace();
    if (testing() || can_test()) walked_.tested.push_back(track_.nights[i]);
    if (testing()) test_last_change();
    if (!testing() && is_estimate_due(i + 1 - starts_.back())) estimate_noise();
    look_for_split();
  }

  bool testing() { return state().testing; }
  bool can_test() const { return now_ + 1 - starts_.back() >= min_recent + min_before(min_recent, starts_.size() - 1); }

  // Residuals of the regimes before `regime`, latest first.
  const std::vector<double>& older_than(std::size_t regime) {
    if (older_of_ == regime) return older_;
    older_.clear();
    older_of_ = regime;
    for (std::size_t k = regime; k-- > 0 && older_.size() < max_reference;) {
      const std::span<const double> values = before(starts_[k], starts_[k + 1]);
      if (values.size() < min_recent) continue;
      const double centre = median_of(values);
      for (std::size_t j = values.size(); j-- > 0 && older_.size() < max_reference;)
        older_.push_back(values[j] - centre);
    }
    return older_;
  }
  // As of now: without the change under test, or the last values.
  void estimate_noise() {
    const std::size_t count = now_ + 1 - starts_.back();
    use_noise(testing() ? starts_.back() : now_ + 1 - std::clamp<std::size_t>(count / 3, 1, left_out));
  }

  // Estimates the noise from values before `until`, and prepares the gate.
  void use_noise(std::size_t until) {
    state().noise_until = until < track_.nights.size() ? track_.nights[until] : state().noise_until;
    older_of_ = std::numeric_limits<std::size_t>::max();
    const std::size_t first = until > noise_values ? until - noise_values : 0;
    std::vector<double> residuals;
    residuals.reserve(noise_values);
    std::vector<std::size_t> segments;
    for (std::size_t k = 0; k < starts_.size() && starts_[k] < until; ++k) {
      const std::size_t low = std::max(first, starts_[k]);
      const std::size_t high = k + 1 < starts_.size() ? std::min(until, starts_[k + 1]) : until;
      if (high < low + min_recent) continue;
      const double centre = median_of(between(low, high));
      segments.push_back(residuals.size());
      for (std::size_t j = low; j < high; ++j) residuals.push_back(values()[j] - centre);
    }
    const Correlation correlation = correlation_of(residuals, segments);
    factors_ = VarianceFactors(correlation);
    state().correlation = correlation.neighbours;
    // The gate scores against the regime in force as of the same night.
    const std::size_t start = starts_.empty() ? 0 : starts_.back();
    const std::size_t count = until > start ? until - start : 0;
    gate_open_ = count >= min_recent;
    if (gate_open_) {
      gate_ = Reference(before(start, until), older_than(starts_.size() - 1));
      state().sigma = gate_.sigma();
      gate_first_ = std::max(start, until > max_recent ? until - max_recent : 0);
      gate_sums_.assign(1, 0.0);
    } else if (!residuals.empty()) {
      for (double& x : residuals) x = std::abs(x);
      state().sigma = sigma_of_distances(residuals);
    }
    const std::size_t known = std::clamp<std::size_t>(until - std::min(until, first), detectable_nights, max_reference);
    state().spread = state().sigma * std::sqrt(factors_.of_difference(detectable_nights, known));
  }

  // Whether key 2 may come near passing with the last `m` values: cheap, as each value is scored once.
  bool passes_gate(std::size_t m, std::size_t n) const {
    if (!gate_open_) return true;
    const std::size_t last = now_ + 1 - gate_first_;
    const double mean = (gate_sums_[last] - gate_sums_[last - m]) / static_cast<double>(m);
    static const double bound = boost::math::quantile(boost::math::normal(), 1 - gate_p / 2);
    return mean * mean > bound * bound * factors_.of_difference(m, n);
  }

  void score_for_gate() {
    if (!gate_open_) return;
    while (gate_first_ + gate_sums_.size() <= now_ + 1) {
      const std::size_t j = gate_first_ + gate_sums_.size() - 1;
      gate_sums_.push_back(gate_sums_.back() + gate_.score(values()[j]));
    }
  }

  void look_for_split() {
    const std::size_t regime = starts_.size() - 1, start = starts_.back();
    const double enough = split_p / window_tests;
    if (!testing()) score_for_gate();
    Keys best;
    std::size_t best_recent = 0;
    for (const std::size_t m : windows) {
      if (now_ + 1 < std::max(start, settled_) + m) break;
      const std::size_t first = now_ + 1 - m;
      if (first < start + min_before(m, regime)) break;
      if (!testing() && !passes_gate(m, std::min(max_reference, first - start))) continue;
      const std::span<const double> earlier = before(start, first);
      const Reference reference(earlier, older_than(regime));
      if (reference.size() < min_reference) continue;
      const Keys keys = test_step(between(first, now_ + 1), earlier, reference, factors_, enough);
      if (keys.p() < enough && (best_recent == 0 || keys.p() < best.p())) {
        best = keys;
        best_recent = m;
      }
    }
    if (best_recent > 0) split(best, best_recent);
  }

  void split(const Keys& keys, std::size_t recent) {
    const std::size_t start = starts_.back();
    const std::size_t reach = std::max<std::size_t>(2 * recent, recent + 5);
    std::size_t first = std::max(start + min_recent, settled_);
    if (now_ + 1 > reach) first = std::max(first, now_ + 1 - reach);
    const std::size_t at = place_between(first, now_ + 1 - min_recent, keys);
    if (testing()) accept();
    walked_.changes.push_back({.change = {.suspected = track_.nights[now_]}});
    starts_.push_back(at);
    state().testing = true;
    estimate_noise();
    test_last_change();
  }

  std::size_t place_between(std::size_t first, std::size_t last, const Keys& keys) const {
    if (first >= last) return last;
    const std::vector<double> likelihood = profile(values(), first, last, keys);
    return first +
           static_cast<std::size_t>(std::max_element(likelihood.begin(), likelihood.end()) - likelihood.begin());
  }

  Keys test_at(std::size_t at, double enough) {
    const std::size_t regime = starts_.size() - 2;
    const std::span<const double> earlier = before(starts_[regime], at);
    const Reference reference(earlier, older_than(regime));
    const std::size_t recent = std::min(max_recent, now_ + 1 - at);
    return test_step(between(at, at + recent), earlier, reference, factors_, enough);
  }

  // The change that the last regime starts with.
  void test_last_change() {
    const std::size_t previous = starts_[starts_.size() - 2];
    std::size_t at = starts_.back();
    Change& change = walked_.changes.back().change;
    if (now_ + 1 - at > max_recent) {
      accept();
      estimate_noise();
      return;
    }
    if (recovers()) return;
    Keys keys = test_at(at, std::numeric_limits<double>::infinity());
    // With more nights, its place is clearer.
    const std::size_t first = std::max({previous + min_recent, settled_, at > 5 ? at - 5 : 0});
    const std::size_t last = std::min(at + 5, now_ + 1 - min_recent);
    if (keys.p_scores < 1 && first < last) {
      const std::size_t better = place_between(first, last, keys);
      if (better != at) {
        at = starts_.back() = better;
        estimate_noise();
        keys = test_at(at, std::numeric_limits<double>::infinity());
      }
    }
    change.last_before = track_.nights[at - 1];
    change.first_after = track_.nights[at];
    change.p = std::min(1.0, placed_tests * keys.p());
    if (change.p > merge_p) {
      merge();
      return;
    }
    if (change.p > options_.false_alarms && change.suspected != track_.nights[now_]) return;
    describe(change, at, keys);
    if (change.p > options_.false_alarms) return;
    const Night length = track_.nights[now_] - change.first_after + 1;
    Trial trial{.night = track_.nights[now_],
                .change = walked_.changes.size() - 1,
                .p = change.p,
                .shift = change.shift,
                .sigma = state().sigma,
                .spread = state().spread,
                .unsteady = is_unsteady(state(), track_.nights[now_])};
    for (const SeriesState::Excursion& excursion : state().excursions)
      trial.outlasts = trial.outlasts && length > excursion.last - excursion.first + 1;
    const std::size_t longest = longest_run(before(previous, at), older_than(starts_.size() - 2), change.shift);
    trial.usual = nights_beyond(between(at, now_ + 1), before(previous, at), change.shift) <=
                  std::max(max_outliers, run_times * longest);
    walked_.trials.push_back(trial);
  }

  // Size and place, from the nights since `at`.
  void describe(Change& change, std::size_t at, const Keys& keys) {
    const std::size_t previous = starts_[starts_.size() - 2];
    const std::span<const double> earlier = before(previous, at);
    const std::span<const double> recent = between(at, std::min(now_ + 1, at + max_recent));
    const Shift shift = hodges_lehmann(recent, earlier, keys.inflation);
    change.shift = shift.value;
    change.interval = shift.interval;
    if (change.suspected == track_.nights[now_])
      change.same_night = std::abs(shift.value) > beyond * Reference(earlier, older_than(starts_.size() - 2)).largest();
    const std::size_t first = std::max(previous + 1, at > 20 ? at - 20 : 1), last = std::min(at + 20, now_);
    const std::vector<double> likelihood = profile(values(), first, last, keys);
    double sum = 0;
    for (const double x : likelihood) sum += std::exp(x);
    change.gaps.clear();
    for (std::size_t k = 0; k < likelihood.size(); ++k) {
      const double weight = std::exp(likelihood[k]) / sum;
      if (weight >= 0.001) change.gaps.push_back({track_.nights[first + k - 1], track_.nights[first + k], weight});
    }
  }

  // The last regime stays.
  void accept() {
    walked_.changes.back().change.stage = Stage::small;
    state().testing = false;
  }

  // The last regime was none.
  void merge() {
    WalkedChange& last = walked_.changes.back();
    last.merged = true;
    last.change.closed = track_.nights[now_];
    remember_excursion(last.change.first_after, track_.nights[now_]);
    starts_.pop_back();
    state().testing = false;
    estimate_noise();
  }

  void remember_excursion(Night first, Night last) {
    std::vector<SeriesState::Excursion>& seen = state().excursions;
    std::erase_if(seen, [&](const SeriesState::Excursion& e) { return last - e.last > memory; });
    seen.push_back({first, last});
  }

  // Whether the change under test takes back the one before it; then both regimes join the one before them.
  bool recovers() {
    if (starts_.size() < 3 || walked_.changes.size() < 2) return false;
    const std::size_t away = starts_[starts_.size() - 2], back = starts_.back(), origin = starts_[starts_.size() - 3];
    const auto found = std::find_if(walked_.changes.rbegin() + 1, walked_.changes.rend(), [&](const WalkedChange& c) {
      return !c.merged && c.change.stage != Stage::recovered && c.change.first_after == track_.nights[away];
    });
    if (found == walked_.changes.rend()) return false;
    WalkedChange& left = *found;
    if (track_.nights[back] - track_.nights[away] > max_excursion) return false;
    const double was = median_of(before(origin, away)), meanwhile = median_of(before(away, back)),
                 is = median_of(between(back, now_ + 1));
    if (std::abs(is - was) > recovered_share * std::abs(meanwhile - was)) return false;
    left.change.stage = Stage::recovered;
    left.change.closed = track_.nights[now_];
    WalkedChange& returned = walked_.changes.back();
    returned.merged = true;
    returned.change.closed = track_.nights[now_];
    remember_excursion(track_.nights[away], track_.nights[back - 1]);
    settled_ = back;
    starts_.resize(starts_.size() - 2);
    state().testing = false;
    estimate_noise();
    return true;
  }

  // The values from now on are another machine's.
  void replace() {
    if (testing()) merge();
    starts_.push_back(now_);
    settled_ = now_;
    estimate_noise();
  }

  const Track& track_;
  const Options& options_;
  Walked& walked_;
  std::vector<std::size_t> starts_;  // of regimes
  std::size_t hidden_ = 0;           // regimes before the first night known
  std::size_t settled_ = 0;
  std::size_t now_ = 0;

  std::vector<double> older_;
  std::size_t older_of_ = std::numeric_limits<std::size_t>::max();

  VarianceFactors factors_;
  bool gate_open_ = false;
  Reference gate_{{}, {}};
  std::size_t gate_first_ = 0;
  std::vector<double> gate_sums_;
};

// The first night of the regime in force, if small changes start no regime.
Night drift_start(const SeriesState& state) {
  for (std::size_t k = state.regimes.size(); k-- > 0;) {
    const bool is_small = std::any_of(state.changes.begin(), state.changes.end(), [&](const Change& change) {
      return change.stage == Stage::small && change.first_after == state.regimes[k];
    });
    if (!is_small) return state.regimes[k];
  }
  return state.regimes.front();
}

}  // namespace

void walk(const Track& track, const Options& options, const WalkRange& range, Walked& walked) {
  Walker(track, options, walked).run(range);
}

void conclude(const Track& track, const Options& options, const NightSummary& night, SeriesState& state) {
  if (track.nights.empty()) return;
  state.detectable.reset();
  if (track.nights.size() >= min_known)
    state.detectable = detectable_step(state.sigma, state.spread, options, night.tested);
  state.flaky = is_flaky(is_unsteady(state, track.nights.back()), state.detectable ? state.sigma : 0, state.spread,
                         options, night.tested);
  state.drift.reset();
  // The exact tests need the noise; most series are clearly quiet.
  const std::size_t n = track.values.size();
  const auto level = [&](std::size_t first, std::size_t count) {
    return median_of(std::span(track.values).subspan(first, count));
  };
  const std::size_t start = static_cast<std::size_t>(
      std::lower_bound(track.nights.begin(), track.nights.end(), drift_start(state)) - track.nights.begin());
  const bool may_drift =
      n - start >= drift_first + 2 * drift_last &&
      std::abs(level(n - drift_last, drift_last) - level(start, drift_first)) > 0.5 * options.tolerance;
  const bool may_step =
      !state.testing && n >= min_known && track.nights.back() == night.night &&
      std::abs(track.values.back() - level(n - min_known, min_known)) > std::max(options.tolerance, 2 * state.sigma);
  if (!may_drift && !may_step) return;
  Walked walked{.state = std::move(state), .changes = {}, .trials = {}, .tested = {}};
  Walker walker(track, options, walked);
  std::optional<Drift> drift = may_drift ? walker.drift(start) : std::nullopt;
  std::optional<Change> step = may_step ? walker.tonight() : std::nullopt;
  state = std::move(walked.state);
  state.drift = drift;
  if (step) state.changes.push_back(*step);
}

}  // namespace assay::history
