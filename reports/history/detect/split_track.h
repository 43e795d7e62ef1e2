// A series with its regimes, without what is left out, and its noise.
#pragma once

#include "reports/history/detect/gate.h"
#include "reports/history/detect/noise.h"
#include "reports/history/detector.h"

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace assay::history {

inline constexpr std::size_t min_recent = 4;      // nights of a regime
inline constexpr std::size_t noise_values = 240;  // of which the noise is estimated

// Two recoveries in 90 nights.
bool is_unsteady(const SeriesState& state, Night night);

// The index of the first night from `night` on.
std::size_t index_in(const Track& track, Night night);

// Of a state and the track that gave it, both of which must outlive it. Indices count the nights that are not left out.
class SplitTrack {
 public:
  SplitTrack(const Track& track, SeriesState& state);

  const Track& track() const { return *track_; }  // without the nights left out
  SeriesState& state() const { return state_; }
  std::span<const double> values() const { return track_->values; }
  std::span<const double> between(std::size_t first, std::size_t last) const {
    return values().subspan(first, last - first);
  }
  std::size_t index_of(Night night) const { return index_in(*track_, night); }
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

 protected:
  // As if the nights `first` to `last` - 1 were missing.
  void leave_out(std::size_t first, std::size_t last);
  // Estimates the noise from values before `until`, and prepares the gate.
  void use_noise(std::size_t until);
  // Stores regimes and settled_ in the state.
  void keep_regimes();

  std::vector<std::size_t> starts_;  // of regimes
  std::size_t settled_ = 0;          // a step must be here or later
  Gate gate_;

 private:
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
