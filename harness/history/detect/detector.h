// Which of thousands of series of nightly figures changed, when and by how much. Pure: knows no store and no machine.
#pragma once

#include "harness/history/night.h"
#include "harness/statistics/statistics.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::history {

inline constexpr std::size_t min_nights = 15;    // nights that a series needs to be judged
inline constexpr std::size_t min_members = 5;    // members that a group needs on a night
inline constexpr std::size_t max_recent = 56;    // nights after a step that are looked at; then it is accepted
inline constexpr std::size_t max_suspects = 20;  // suspects of one night at most, the largest
inline constexpr double recovered_share = 0.35;  // share of a step that is left, at most, when it has recovered

// One series: at most one value per night.
struct Track {
  std::vector<Night> nights;   // ascending; nights without a value are absent
  std::vector<double> values;  // natural logarithms, larger is faster; as many as nights, all finite
  // Nights from which on the hardware is another (a replaced GPU). Their values start a regime, which inherits the
  // noise of the regime before and is no event of the detector's.
  std::vector<Night> replaced = {};
  bool count = false;  // a count, of which every night is judged by itself; see counts.h

  // The index of the first night from `night` on; their number if there is none.
  std::size_t index_of(Night night) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(nights, night) - nights.begin());
  }
  // How many nights are not after `night`.
  std::size_t count_until(Night night) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(nights, night) - nights.begin());
  }
};

// Series that may change together: all of a family on a machine, all of a machine, a case on all machines. Its own
// series is the median of its members' residuals, on nights with at least five of them.
struct Group {
  std::vector<std::size_t> members;  // indices of tracks
};

struct Options {
  double false_alarms = 0.01;  // the most nights without a real change on which anything may alarm: 1 in 100
  double tolerance = 0.02;     // smaller changes do not alarm
  unsigned threads = 2;        // the result is the same for any number
  std::string split_by = {};   // the fact by whose values read_history() splits the series; analyse() has no use for it
  // If nights are commits: the first parents of the newest, the oldest first. For read_history(), as split_by.
  std::vector<std::string> commits = {};
};

enum class Stage : std::uint8_t {
  suspect,    // split off; more nights decide
  open,       // passed the test of all series of that night: an alarm
  small,      // real after 56 nights, never an alarm
  recovered,  // back within 35 % of the step in at most 45 nights
};

// A step in one series. Sizes are natural logarithms of ratios of speed: below 0 is slower.
struct Change {
  Stage stage = Stage::suspect;
  Night last_before = 0;             // the change is after this night
  Night first_after = 0;             // and not after this one
  Night suspected = 0;               // when it was first seen
  std::optional<Night> opened = {};  // when it became an alarm; kept if it recovers
  std::optional<Night> closed = {};  // when it recovered
  double p = 1;                      // probability under no change, on the last night on which it was tested
  double shift = 0;
  Interval interval = {};   // 95 % of shift
  bool same_night = false;  // larger than any excursion in the series' history: worth confirming tonight
  // exp(log-likelihood) of each gap between nights being the place, as shares of their sum; nights are those after the
  // gap. Gaps below 0.1 % are left out.
  struct Gap {
    Night before = 0;
    Night after = 0;
    double weight = 0;
  };
  std::vector<Gap> gaps = {};
};

// A slow change: the median of the last 30 nights against that of the regime's first 60.
struct Drift {
  double shift = 0;
  Interval interval = {};
  Night since = 0;
};

// The state of one series after the last night. It has everything that the next night's analysis needs besides the
// values.
struct SeriesState {
  std::vector<Night> regimes;   // first night of each, ascending; the last is in force
  std::vector<Change> changes;  // in order of time, without changes that were merged back
  std::optional<Drift> drift = {};
  double sigma = 0;                       // noise between nights: robust standard deviation; 0 if unknown
  double correlation = 0;                 // between neighbouring nights
  std::optional<double> detectable = {};  // the smallest step that is found within 14 nights in 80 % of cases; absent
                                          // below 15 nights
  bool flaky = false;                     // two recoveries in 90 nights, or detectable above 5 %

  // The rest is for the next night's analysis.
  struct Excursion {
    Night first = 0;
    Night last = 0;
  };
  std::vector<Excursion> excursions = {};  // steps that went back, of the last year
  // Nights of all years with which later nights are not compared: steps that went back, if they lasted more than 14
  // nights or were the first for a year. More short steps are this series' usual excursions.
  std::vector<Excursion> left_out = {};
  Night settled = 0;      // a step must be at this night or later: the last one went back here
  Night noise_until = 0;  // the noise is that of the nights before
  bool testing = false;   // the last regime starts at a change that more nights decide about
  double spread = 0;      // standard error of a step 14 nights old
};

struct NightSummary {
  Night night = 0;
  std::size_t tested = 0;  // series and groups with a value that night and enough nights before it
  double threshold = 0;    // p below which a change alarmed
  std::size_t opened = 0;
};

struct Analysis {
  std::vector<SeriesState> series;  // one for each track, in their order
  std::vector<SeriesState> groups;  // one for each group, in their order
  std::vector<NightSummary> nights;
};

// Analyses every night in order as if it were the last one known, so that the result does not depend on when or in
// which order nights were added. With `previous`, only nights after its last night are analysed; the result is the same
// if tracks and groups begin with those of `previous` (new ones at the end) and no earlier value has changed since.
Analysis analyse(std::span<const Track> tracks, std::span<const Group> groups, const Options& options,
                 Analysis previous = {});

// Benjamini & Hochberg's step-up procedure (JRSS B 1995) at `level`: how many of these p values, ascending, pass among
// `tests` tests. The others of these have p = 1.
std::size_t passing(std::span<const double> ascending, double level, std::size_t tests);

// Nights measured apart, such as a branch's, against the regime in force, which stays as it is.
struct Comparison {
  double shift = 0;        // natural logarithm of the ratio of speeds: above 0, they are faster
  Interval interval = {};  // 95 % of shift
  double p = 1;            // probability under no difference
  bool may_alarm = false;  // at least the tolerance, and larger than the series' usual excursions
  bool beyond = false;     // larger than any excursion in the series' history
};
// `track` and `state` as analyse() has left them; `nights` are consecutive, on the scale of the track; at most the last
// 56 count. `tests`: series compared. Absent if there is too little to compare with.
std::optional<Comparison> compare(const Track& track, const SeriesState& state, std::span<const double> nights,
                                  const Options& options, std::size_t tests);

// A series as bytes and back, for the store: the same on every machine of one byte order. Throws DataError if `bytes`
// is not of this version or damaged; the caller then analyses all nights.
std::string to_bytes(const SeriesState& state);
SeriesState state_of_bytes(std::string_view bytes);

}  // namespace assay::history
