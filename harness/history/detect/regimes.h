// The regimes of one series, night by night: where it is split, and what becomes of each change. Alarms are decided
// over all series afterwards, and nothing here depends on them.
#pragma once

#include "harness/history/detect/detector.h"
#include "harness/history/detect/split_track.h"

#include <vector>

namespace assay::history {

struct WalkedChange {
  Change change;
  bool merged = false;    // the walk found later that it is no change; if it was an alarm by then, it has recovered
  bool replaced = false;  // merged as the hardware was replaced: nobody knows whether it has
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

inline constexpr Night max_excursion = 45;  // nights after which a step that goes back has recovered, at most

// Walks the nights of `range`. `walked` is what an earlier walk of the same track gave, or starts empty.
void walk(const Track& track, const Options& options, const WalkRange& range, Walked& walked);

// After the last night: what is detectable, drift, and suspects of that night.
void conclude(const Track& track, const Options& options, const NightSummary& night, SeriesState& state);

}  // namespace assay::history
