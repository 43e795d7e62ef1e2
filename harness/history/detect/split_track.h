// A series with its regimes, without what is left out, and its noise.
#pragma once

#include "harness/history/detect/detector.h"
#include "harness/history/detect/gate.h"
#include "harness/history/detect/two_keys.h"

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace assay::history {

inline constexpr std::size_t run_times = 2;     // a step must last longer than this times the longest stay seen
inline constexpr std::size_t known_visits = 2;  // to a level, after which one more is usual
inline constexpr std::size_t known_times = 4;   // unless it lasts longer than this times the longest, and than max_stay
inline constexpr std::size_t max_stay = 45;
inline constexpr std::size_t min_recent = 4;      // nights of a regime
inline constexpr std::size_t noise_values = 240;  // values from which the noise is estimated

// A night on which a change might have been an alarm.
struct Trial {
  Night night = 0;
  std::size_t change = 0;  // index into Walked::changes
  double p = 1;
  double shift = 0;
  double sigma = 0;      // noise between nights
  double spread = 0;     // standard error of a step 14 nights old
  bool outlasts = true;  // every excursion seen that is not left out
  // Too few nights beyond half of it: at most three, or twice as many as came and went before; or it leads to a level
  // where the series was at least twice already, and not four times as long as ever before.
  bool usual = false;
  bool unsteady = false;  // two recoveries in 90 nights
  bool exact = false;     // a count, which needs no statistics
  // What the step explains more than a straight line does, in variances of a night: little in a drift.
  double beyond_line = std::numeric_limits<double>::infinity();
};

// Whether a trial may be an alarm, if its p is small enough among the tests of its night.
bool may_alarm(const Trial& trial, const Options& options, std::size_t tests);

// Two recoveries in 90 nights.
bool is_unsteady(const SeriesState& state, Night night);

// A view of a state and the track that gave it, both of which must outlive it. Indices count the nights that are not
// left out.
class SplitTrack {
 public:
  SplitTrack(const Track& track, SeriesState& state);

  const Track& track() const { return *track_; }  // without the nights left out
  SeriesState& state() const { return state_; }
  std::span<const double> values() const { return track_->values; }
  std::span<const double> between(std::size_t first, std::size_t last) const {
    return values().subspan(first, last - first);
  }
  std::size_t index_of(Night night) const { return track_->index_of(night); }
  // At most max_reference values of a regime before `last`.
  std::span<const double> before(std::size_t start, std::size_t last) const {
    return between(std::max(start, last > max_reference ? last - max_reference : 0), last);
  }
  const std::vector<std::size_t>& starts() const { return starts_; }
  std::size_t settled() const { return settled_; }
  const VarianceFactors& factors() const { return factors_; }

  // Residuals of the regimes before `regime`, latest first.
  const std::vector<double>& older_than(std::size_t regime);
  // The largest distance from the level of a night: in `reference`, or left out.
  double largest_excursion(const Reference& reference) const;

  // Tests a step of that size between `earlier`, nights of that regime, and `recent`, the nights up to `now`. Steps of
  // up to `least` nights are usual.
  Trial trial(double p, double shift, std::size_t regime, std::span<const double> earlier,
              std::span<const double> recent, Night length, Night now, std::size_t least);

 protected:
  // Treats the nights `first` to `last` - 1 as missing.
  void leave_out(std::size_t first, std::size_t last);
  // Estimates the noise from values before `until`, and prepares the gate.
  void use_noise(std::size_t until);
  // Stores regimes and settled_ in the state.
  void keep_regimes();

  std::vector<std::size_t> starts_;  // first indices of regimes
  std::size_t settled_ = 0;          // a step must be here or later
  Gate gate_;

 private:
  // Whether a step leads to a level where the series was known_visits times, or back from one.
  bool leads_to_known(double shift, std::size_t regime, std::span<const double> earlier,
                      std::span<const double> recent) const;
  // To that level, which is so far from the level of the regime: in `earlier`, the regime's nights, before it, or left
  // out.
  Visits visits_to(double level, double shift, std::size_t regime, std::span<const double> earlier) const;
  bool is_left_out(const SeriesState::Excursion& excursion) const;

  const Track& all_;
  const Track* track_;
  Track shortened_;
  SeriesState& state_;
  std::size_t hidden_ = 0;  // regimes before the first night known
  std::vector<double> older_;
  std::size_t older_of_ = std::numeric_limits<std::size_t>::max();
  VarianceFactors factors_;
};

}  // namespace assay::history
