// The regimes of one series, night by night: where it is split, and what becomes of each change. What becomes an alarm
// is decided over all series afterwards, and nothing here depends on that.
#pragma once

#include "reports/history/detect/detectable.h"
#include "reports/history/detect/two_keys.h"
#include "reports/history/detector.h"

#include <cstddef>
#include <vector>

namespace assay::history {

// A night on which a change might have been an alarm.
struct Trial {
  Night night = 0;
  std::size_t change = 0;  // index into Walked::changes
  double p = 1;
  double shift = 0;
  double sigma = 0;       // noise between nights
  double spread = 0;      // standard error of a step 14 nights old
  bool outlasts = true;   // every excursion seen
  bool usual = false;     // too few nights beyond half of it: at most three, or twice as many as came and went before
  bool unsteady = false;  // two recoveries in 90 nights
};

struct WalkedChange {
  Change change;
  bool merged = false;  // the walk found later that it is no change; if it was an alarm by then, it has recovered
};

struct Walked {
  SeriesState state;  // without its changes
  std::vector<WalkedChange> changes;
  std::vector<Trial> trials;
  std::vector<Night> tested;  // nights with enough before them
};

struct WalkRange {
  Night first = 0;       // nights before were walked already
  Night last = 0;        // later nights are not looked at
  bool refresh = false;  // estimate the noise on the first night: earlier values have changed
};

// Whether a trial may be an alarm, if its p is small enough among the tests of its night.
bool may_alarm(const Trial& trial, const Options& options, std::size_t tests);

// Walks the nights of `range`. `walked` is what an earlier walk of the same track gave, or starts empty.
void walk(const Track& track, const Options& options, const WalkRange& range, Walked& walked);

// After the last night: what is detectable, drift, and suspects of that night.
void conclude(const Track& track, const Options& options, const NightSummary& night, SeriesState& state);

}  // namespace assay::history
