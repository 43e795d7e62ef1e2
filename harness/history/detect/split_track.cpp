#include "harness/history/detect/split_track.h"

#include "harness/history/detect/detectable.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace assay::history {

namespace {

constexpr Night unsteady_nights = 90;
constexpr double line_margin = 1.3;
constexpr double state_deviations = 3;
constexpr std::size_t min_stay = 3;  // nights
constexpr std::size_t min_near_stay = 5;

}  // namespace

bool may_alarm(const Trial& trial, const Options& options, std::size_t tests) {
  // The logarithm of how many series might drift: a step must be that much likelier than a line.
  const double least =
      line_margin * std::log(static_cast<double>(std::max<std::size_t>(tests, 1)) / options.false_alarms);
  return !trial.usual && trial.beyond_line >= least && std::abs(trial.shift) >= options.tolerance &&
         (trial.outlasts || !is_flaky(trial.unsteady, trial.sigma, trial.spread, options, tests));
}

bool is_unsteady(const SeriesState& state, Night night) {
  return std::ranges::count_if(state.excursions, [&](const SeriesState::Excursion& excursion) {
           return night - excursion.last <= unsteady_nights;
         }) >= 2;
}

SplitTrack::SplitTrack(const Track& track, SeriesState& state) : all_(track), track_(&track), state_(state) {
  for (const SeriesState::Excursion& e : state_.left_out) leave_out(index_of(e.first), index_of(e.last + 1));
  // The regimes of a group before the first night that is still known count as one.
  for (const Night night : state_.regimes) {
    const std::size_t at = std::min(index_of(night), std::max<std::size_t>(track_->nights.size(), 1) - 1);
    if (starts_.empty() || at > starts_.back()) {
      starts_.push_back(at);
    } else {
      ++hidden_;
      starts_.back() = at;
    }
  }
  settled_ = index_of(state_.settled);
  use_noise(starts_.empty() ? 0 : index_of(state_.noise_until));
}

const std::vector<double>& SplitTrack::older_than(std::size_t regime) {
  if (older_of_ == regime) return older_;
  older_.clear();
  older_of_ = regime;
  for (std::size_t k = regime; k-- > 0 && older_.size() < max_reference;) {
    const std::span<const double> values = before(starts_[k], starts_[k + 1]);
    if (values.size() < min_recent) continue;
    const double centre = median_of(values);
    for (std::size_t j = values.size(); j-- > 0 && older_.size() < max_reference;) older_.push_back(values[j] - centre);
  }
  return older_;
}

bool SplitTrack::is_left_out(const SeriesState::Excursion& excursion) const {
  return std::ranges::any_of(state_.left_out,
                             [&](const SeriesState::Excursion& one) { return one.first == excursion.first; });
}

double SplitTrack::largest_excursion(const Reference& reference) const {
  double largest = reference.largest();
  for (const SeriesState::Excursion& e : state_.left_out) {
    for (std::size_t i = all_.index_of(e.first), end = all_.index_of(e.last + 1); i < end; ++i)
      largest = std::max(largest, std::abs(all_.values[i] - reference.centre()));
  }
  return largest;
}

Trial SplitTrack::trial(double p, double shift, std::size_t regime, std::span<const double> earlier,
                        std::span<const double> recent, Night length, Night now, std::size_t least) {
  Trial trial{.night = now,
              .p = p,
              .shift = shift,
              .sigma = state_.sigma,
              .spread = state_.spread,
              .unsteady = is_unsteady(state_, now)};
  for (const SeriesState::Excursion& excursion : state_.excursions)
    trial.outlasts = trial.outlasts && (is_left_out(excursion) || length > excursion.last - excursion.first + 1);
  const std::size_t longest = longest_run(earlier, older_than(regime), shift);
  trial.usual = nights_beyond(recent, earlier, shift) <= std::max(least, run_times * longest) ||
                leads_to_known(shift, regime, earlier, recent);
  return trial;
}

bool SplitTrack::leads_to_known(double shift, std::size_t regime, std::span<const double> earlier,
                                std::span<const double> recent) const {
  const double level = median_of(earlier);
  // Where the nights after the step are, if some are back already.
  std::vector<double> there;
  for (const double x : recent)
    if ((x - level) / shift > 0.5) there.push_back(x);
  if (there.empty()) return false;
  const double target = median_in_place(there), step = target - level;
  const std::size_t at = static_cast<std::size_t>(earlier.data() + earlier.size() - values().data());
  const auto is_known = [&](const Visits& visits, std::size_t extra) {
    return visits.count + extra >= known_visits && recent.size() <= std::max(max_stay, known_times * visits.longest);
  };
  const std::size_t again = visits_in(recent, target, step, min_stay).count;
  if (is_known(visits_to(target, step, regime, between(starts_[regime], at)), std::max<std::size_t>(again, 1) - 1))
    return true;
  // A return from such a level.
  if (regime == 0) return false;
  const std::span<const double> origin = between(starts_[regime - 1], starts_[regime]);
  return is_near(median_of(origin), target, step) && is_known(visits_to(level, -step, regime - 1, origin), 0);
}

Visits SplitTrack::visits_to(double level, double shift, std::size_t regime, std::span<const double> earlier) const {
  // Noise itself makes short stays at a level that is near.
  const bool is_far = std::abs(shift) >= state_deviations * state_.sigma;
  Visits all = visits_in(earlier, level, shift, is_far ? min_stay : min_near_stay);
  // What counts as one stay may have been back for a few nights.
  const auto add = [&](std::span<const double> stay) {
    const Visits inside = visits_in(stay, level, shift, min_stay);
    const bool is_there = is_near(median_of(stay), level, shift);
    all.count += std::max<std::size_t>(inside.count, is_there ? 1 : 0);
    all.longest = std::max({all.longest, inside.longest, is_there ? stay.size() : 0});
  };
  for (std::size_t k = 0; k < regime; ++k) add(between(starts_[k], starts_[k + 1]));
  for (const SeriesState::Excursion& e : state_.left_out) {
    const std::size_t first = all_.index_of(e.first), end = all_.index_of(e.last + 1);
    if (first < end) add(std::span(all_.values).subspan(first, end - first));
  }
  return all;
}

void SplitTrack::leave_out(std::size_t first, std::size_t last) {
  if (first == last) return;
  if (track_ == &all_) shortened_ = all_;
  track_ = &shortened_;
  const auto cut = [&](auto& list) {
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(first), list.begin() + static_cast<std::ptrdiff_t>(last));
  };
  cut(shortened_.nights), cut(shortened_.values);
}

void SplitTrack::use_noise(std::size_t until) {
  state_.noise_until = until < track_->nights.size() ? track_->nights[until] : state_.noise_until;
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
    const std::size_t segment = residuals.size();
    segments.push_back(segment);
    for (std::size_t j = low; j < high; ++j) residuals.push_back(values()[j] - centre);
    const std::span<double> all = std::span(residuals).subspan(segment);
    const std::size_t place = step_within(all, min_recent);
    if (place == 0) continue;
    segments.push_back(segment + place);
    for (const std::span<double> side : {all.first(place), all.subspan(place)}) {
      const double level = median_of(side);
      for (double& x : side) x -= level;
    }
  }
  const Correlation correlation = correlation_of(residuals, segments);
  factors_ = VarianceFactors(correlation);
  state_.correlation = correlation.neighbours;
  // The gate scores against the regime in force as of the same night.
  const std::size_t start = starts_.empty() ? 0 : starts_.back();
  const std::size_t count = until > start ? until - start : 0;
  gate_ = {};
  if (count >= min_recent) {
    Reference reference(before(start, until), older_than(starts_.size() - 1));
    state_.sigma = reference.sigma();
    gate_ = Gate(std::move(reference), std::max(start, until > max_recent ? until - max_recent : 0));
  } else if (!residuals.empty()) {
    for (double& x : residuals) x = std::abs(x);
    state_.sigma = sigma_of_distances(residuals);
  }
  const std::size_t known = std::clamp<std::size_t>(until - first, detectable_nights, max_reference);
  state_.spread = state_.sigma * std::sqrt(factors_.of_difference(detectable_nights, known));
}

void SplitTrack::keep_regimes() {
  if (settled_ < track_->nights.size()) state_.settled = track_->nights[settled_];
  state_.regimes.resize(hidden_);
  for (const std::size_t start : starts_) state_.regimes.push_back(track_->nights[start]);
}

}  // namespace assay::history
