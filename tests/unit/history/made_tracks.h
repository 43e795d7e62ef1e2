// Series made by hand for the tests of the detector.
#pragma once

#include "harness/core/rng.h"
#include "harness/history/detect/detector.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace assay::history {

inline constexpr Night first_night = 20000;

inline Night night(std::size_t i) { return first_night + static_cast<Night>(i); }

// A series of independent normal noise of 1 %.
class Made {
 public:
  explicit Made(std::size_t nights, std::uint64_t seed = 1, double sigma = 0.01) : random_(seed, "detector test") {
    for (std::size_t i = 0; i < nights; ++i) {
      track_.nights.push_back(night(i));
      track_.values.push_back(sigma * random_.normal(i));
    }
  }
  // Multiplies the figures of nights first, ... last - 1.
  Made& times(double factor, std::size_t first, std::size_t last = std::numeric_limits<std::size_t>::max()) {
    for (std::size_t i = first; i < std::min(last, track_.values.size()); ++i) track_.values[i] += std::log(factor);
    return *this;
  }
  Made& without(std::size_t first, std::size_t last) {
    const auto cut = [&](auto& list) {
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(first), list.begin() + static_cast<std::ptrdiff_t>(last));
    };
    cut(track_.nights);
    cut(track_.values);
    return *this;
  }
  Made& replaced(std::size_t at) {
    track_.replaced.push_back(night(at));
    return *this;
  }
  operator Track() const { return track_; }

 private:
  Rng random_;
  Track track_;
};

// One series is judged as if it were one of 300.
inline Options of_300(double tolerance = 0.02) { return {.false_alarms = 0.01 / 300, .tolerance = tolerance}; }

inline SeriesState state_of(const Track& track, const Options& options = of_300()) {
  return analyse(std::span(&track, 1), {}, options).series.at(0);
}

inline std::size_t alarms(const SeriesState& state) {
  return static_cast<std::size_t>(
      std::count_if(state.changes.begin(), state.changes.end(), [](const Change& c) { return c.opened.has_value(); }));
}

inline Track cut_after(Track track, Night last) {
  while (!track.nights.empty() && track.nights.back() > last) {
    track.nights.pop_back();
    track.values.pop_back();
  }
  return track;
}

inline std::string bytes_of(const Analysis& analysis) {
  std::string bytes;
  for (const auto* states : {&analysis.series, &analysis.groups}) {
    for (const SeriesState& state : *states) bytes += to_bytes(state);
  }
  for (const NightSummary& s : analysis.nights)
    bytes += std::to_string(s.night) + " " + std::to_string(s.tested) + " " + std::to_string(s.opened) + " " +
             std::to_string(s.threshold) + "\n";
  return bytes;
}

}  // namespace assay::history
