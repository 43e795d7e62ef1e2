// One series' life: lenient splits, nightly tests of the last one, and merging back.
#include "harness/history/detect/regimes.h"

#include "harness/history/detect/counts.h"
#include "harness/history/detect/detectable.h"
#include "harness/history/detect/large_step.h"
#include "harness/history/detect/split_track.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay::history {

namespace {

constexpr std::size_t windows[] = {4, 5, 7, 10, 14, 20, 28, 40, 56};
constexpr double split_p = 1e-3;    // of a split, times window_tests
constexpr double window_tests = 4;  // the windows overlap: nine of them count as four tests
constexpr double merge_p = 0.1;
constexpr Night memory = 365;           // of excursions
constexpr std::size_t may_be_new = 28;  // the last values, which a step that is not found yet may have shifted
constexpr std::size_t min_reference = 7;
constexpr std::size_t max_outliers = 3;  // nights in a row that are no step

bool is_replaced(const Track& track, std::size_t i) {
  return i > 0 && std::ranges::any_of(track.replaced, [&](Night night) {
           return track.nights[i - 1] < night && night <= track.nights[i];
         });
}

// Whether the noise is estimated again at this number of values in a regime: often while they are few.
bool is_estimate_due(std::size_t values) {
  if (values >= 112) return values % 28 == 0;
  if (values >= 28) return values % 14 == 0;
  return values >= 8 && values % 4 == 0;
}

class Walker : private SplitTrack {
 public:
  Walker(const Track& track, const Options& options, Walked& walked)
      : SplitTrack(track, walked.state), options_(options), walked_(walked) {
    if (testing() && (starts_.size() < 2 || starts_.back() < starts_[starts_.size() - 2] + min_recent)) accept();
  }

  void run(const WalkRange& range) {
    if (track().nights.empty()) return;
    now_ = index_of(range.first);
    const auto is_left = [&] { return now_ < track().nights.size() && track().nights[now_] <= range.last; };
    if (is_left() && range.refresh && !starts_.empty()) estimate_noise();
    for (; is_left(); ++now_) step();
    keep_regimes();
  }

 private:
  std::size_t min_before(std::size_t recent, std::size_t regime) const {
    return regime > 0 ? min_recent : std::max<std::size_t>(7, recent / 2);
  }

  void step() {
    if (starts_.empty()) starts_.push_back(now_);
    if (is_replaced(track(), now_)) replace();
    if (testing() || can_test()) walked_.tested.push_back(track().nights[now_]);
    if (testing()) test_last_change();
    if (!testing() && is_estimate_due(now_ + 1 - starts_.back())) estimate_noise();
    look_for_split();
  }

  bool testing() { return state().testing; }
  bool can_test() const { return now_ + 1 - starts_.back() >= min_recent + min_before(min_recent, starts_.size() - 1); }

  // As of now: without the change under test, or the last values.
  void estimate_noise() {
    const std::size_t count = now_ + 1 - starts_.back();
    use_noise(testing() ? starts_.back() : now_ + 1 - std::clamp<std::size_t>(count / 3, 1, may_be_new));
  }

  void look_for_split() {
    const std::size_t regime = starts_.size() - 1, start = starts_.back();
    const double enough = split_p / window_tests;
    if (!testing()) gate_.score(values().first(now_ + 1));
    Keys best;
    std::size_t best_recent = 0;
    for (const std::size_t m : windows) {
      if (now_ + 1 < std::max(start, settled_) + m) break;
      const std::size_t first = now_ + 1 - m;
      if (first < start + min_before(m, regime)) break;
      if (!testing() && !gate_.passes(m, factors().of_difference(m, std::min(max_reference, first - start)))) continue;
      const std::span<const double> earlier = before(start, first);
      const Reference reference(earlier, older_than(regime));
      if (reference.size() < min_reference) continue;
      const Keys keys = test_step(between(first, now_ + 1), earlier, reference, factors(), enough);
      if (keys.p() < enough && (best_recent == 0 || keys.p() < best.p())) {
        best = keys;
        best_recent = m;
      }
    }
    if (best_recent == 0) best_recent = look_for_large_step(start, enough, best);
    if (best_recent > 0) split(best, best_recent);
  }

  // Steps that the keys do not see yet. Returns their nights, or 0.
  std::size_t look_for_large_step(std::size_t start, double enough, Keys& keys) {
    for (std::size_t m = min_recent; m <= large_recent; ++m) {
      if (now_ + 1 < std::max(start + min_recent, settled_) + m) break;
      const std::size_t first = now_ + 1 - m;
      if (large_p(start, first) > enough) continue;
      const std::span<const double> earlier = before(start, first);
      const Reference reference(earlier, older_than(starts_.size() - 1));
      keys =
          test_step(between(first, now_ + 1), earlier, reference, factors(), std::numeric_limits<double>::infinity());
      if (keys.p_scores < 1) return m;
    }
    return 0;
  }

  // large_step_p() of the last nights since `at`, in the regime that begins at `start`. A regime that is too short is
  // filled up with older ones, as if it had been there.
  double large_p(std::size_t start, std::size_t at) {
    const std::span<const double> recent = between(std::max(at, now_ + 1 - std::min(now_ + 1, large_recent)), now_ + 1);
    const std::span<const double> earlier = before(start, at);
    if (earlier.size() >= min_nights) return large_step_p(recent, earlier);
    const std::size_t regime = static_cast<std::size_t>(std::ranges::upper_bound(starts_, start) - starts_.begin()) - 1;
    const std::vector<double>& older = older_than(regime);
    const double centre = median_of(earlier);
    std::vector<double> filled;
    for (std::size_t k = std::min(older.size(), min_nights); k-- > 0;) filled.push_back(centre + older[k]);
    filled.insert(filled.end(), earlier.begin(), earlier.end());
    return large_step_p(recent, filled);
  }

  void split(const Keys& keys, std::size_t recent) {
    const std::size_t start = starts_.back();
    const std::size_t reach = std::max<std::size_t>(2 * recent, recent + 5);
    std::size_t first = std::max(start + min_recent, settled_);
    if (now_ + 1 > reach) first = std::max(first, now_ + 1 - reach);
    const std::size_t at = place_between(first, now_ + 1 - min_recent, keys);
    if (testing()) accept();
    walked_.changes.push_back({.change = {.suspected = track().nights[now_]}});
    starts_.push_back(at);
    state().testing = true;
    estimate_noise();
    test_last_change();
  }

  std::size_t place_between(std::size_t first, std::size_t last, const Keys& keys) const {
    if (first >= last) return last;
    const std::vector<double> likelihood = profile(values(), first, last, keys);
    return first + static_cast<std::size_t>(std::ranges::max_element(likelihood) - likelihood.begin());
  }

  Keys test_at(std::size_t at, double enough) {
    const std::size_t regime = starts_.size() - 2;
    const std::span<const double> earlier = before(starts_[regime], at);
    const Reference reference(earlier, older_than(regime));
    const std::size_t recent = std::min(max_recent, now_ + 1 - at);
    return test_step(between(at, at + recent), earlier, reference, factors(), enough);
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
    change.last_before = track().nights[at - 1];
    change.first_after = track().nights[at];
    change.p = std::min(placed_tests * keys.p(), large_p(previous, at));
    if (change.p > merge_p) {
      merge();
      return;
    }
    if (change.p > options_.false_alarms && change.suspected != track().nights[now_]) return;
    describe(change, at, keys);
    if (change.p > options_.false_alarms) return;
    Trial made = trial(change.p, change.shift, starts_.size() - 2, before(previous, at), between(at, now_ + 1),
                       track().nights[now_] - change.first_after + 1, track().nights[now_], max_outliers);
    made.change = walked_.changes.size() - 1;
    made.beyond_line = beyond_line(previous, at, keys);
    walked_.trials.push_back(made);
  }

  // What the step explains more than a straight line through all nights, in variances of a night. Outliers are clipped.
  double beyond_line(std::size_t start, std::size_t at, const Keys& keys) const {
    const std::span<const double> earlier = before(start, at);
    const std::size_t recent = std::min(now_ + 1 - at, max_recent);
    const double sigma = keys.scale / scale_of_sigma;
    const double low = std::min(keys.level_before, keys.level_after) - 3 * sigma;
    const double high = std::max(keys.level_before, keys.level_after) + 3 * sigma;
    const std::span<const double> all = between(at - earlier.size(), at + recent);
    std::vector<double> clipped(all.begin(), all.end());
    for (double& x : clipped) x = std::clamp(x, low, high);
    return (explained_by_step(clipped, recent) - explained_by_line(clipped)) / (sigma * sigma * keys.inflation);
  }

  // Size and place, from the nights since `at`.
  void describe(Change& change, std::size_t at, const Keys& keys) {
    const std::size_t previous = starts_[starts_.size() - 2];
    const std::span<const double> earlier = before(previous, at);
    const std::span<const double> recent = between(at, std::min(now_ + 1, at + max_recent));
    const Shift shift = hodges_lehmann(recent, earlier, keys.inflation);
    change.shift = shift.value;
    change.interval = shift.interval;
    if (change.suspected == track().nights[now_])
      change.same_night = std::abs(shift.value) > largest_excursion(Reference(earlier, older_than(starts_.size() - 2)));
    const std::size_t first = std::max(previous + 1, at > 20 ? at - 20 : 1), last = std::min(at + 20, now_);
    const std::vector<double> likelihood = profile(values(), first, last, keys);
    double sum = 0;
    for (const double x : likelihood) sum += std::exp(x);
    change.gaps.clear();
    for (std::size_t k = 0; k < likelihood.size(); ++k) {
      const double weight = std::exp(likelihood[k]) / sum;
      if (weight >= 0.001) change.gaps.push_back({track().nights[first + k - 1], track().nights[first + k], weight});
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
    last.change.closed = track().nights[now_];
    remember_excursion(last.change.first_after, track().nights[now_]);
    starts_.pop_back();
    state().testing = false;
    estimate_noise();
  }

  // The nights from `away` until before `end` were an excursion. They are left out, except from a series that comes and
  // goes: there, short ones are its noise.
  void settle(std::size_t away, std::size_t end) {
    const SeriesState::Excursion excursion{track().nights[away], track().nights[end - 1]};
    std::vector<SeriesState::Excursion>& before = state().left_out;
    remember_excursion(excursion.first, excursion.last);
    settled_ = end;
    if (end - away <= max_run && !before.empty() && excursion.first - before.back().last <= memory) return;
    before.push_back(excursion);
    leave_out(away, end);
    now_ -= end - away;
    settled_ = away;
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
      return !c.merged && c.change.stage != Stage::recovered && c.change.first_after == track().nights[away];
    });
    if (found == walked_.changes.rend()) return false;
    WalkedChange& left = *found;
    if (track().nights[back] - track().nights[away] > max_excursion) return false;
    const double was = median_of(before(origin, away)), meanwhile = median_of(before(away, back)),
                 is = median_of(between(back, now_ + 1));
    if (std::abs(is - was) > recovered_share * std::abs(meanwhile - was)) return false;
    left.change.stage = Stage::recovered;
    left.change.closed = track().nights[now_];
    WalkedChange& returned = walked_.changes.back();
    returned.merged = true;
    returned.change.closed = track().nights[now_];
    starts_.resize(starts_.size() - 2);
    // The return may be split off a night too early.
    std::size_t end = back;
    while (end < now_ && std::abs(values()[end] - meanwhile) < std::abs(values()[end] - was)) ++end;
    settle(away, end);
    state().testing = false;
    estimate_noise();
    return true;
  }

  // The values from now on are another machine's.
  void replace() {
    if (testing()) {
      merge();
      walked_.changes.back().replaced = true;
    }
    starts_.push_back(now_);
    settled_ = now_;
    estimate_noise();
  }

  const Options& options_;
  Walked& walked_;
  std::size_t now_ = 0;
};

}  // namespace

void walk(const Track& track, const Options& options, const WalkRange& range, Walked& walked) {
  if (track.count && !varies(track))
    walk_count(track, range, walked);
  else
    Walker(track, options, walked).run(range);
}

}  // namespace assay::history
