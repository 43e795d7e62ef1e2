// Which records form a series: training cases that are equal in everything but the world size.
#pragma once

#include "reports/scaling/apart.h"
#include "reports/scaling/estimate.h"
#include "reports/scaling/likeness.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::report::scaling {

// Over ranks strong scaling keeps the batch of all, weak scaling the batch of one.
enum class Mode { strong, weak };

struct WorldPoint {
  int ranks = 1;
  int nodes = 1;
  Estimate time;                       // of a step (of a run to quality), seconds; the slowest rank's
  std::optional<double> exposed = {};  // exposed communication as a share of the step
  std::vector<Entry> entries;          // several: several runs
};

struct Series {
  std::string title;
  Mode mode = Mode::strong;
  std::string figure;  // the metric that `time` is of: step_time, time_to_quality
  Likeness likeness;
  std::vector<WorldPoint> points;  // ascending ranks, at least two
};

// A case that was measured at one world size alone.
struct Lone {
  std::string title;
  int ranks = 1;
  Entry entry;
};

struct SeriesSet {
  std::vector<Series> series;  // by mode, then title
  std::vector<Apart> apart;
  std::vector<Lone> lone;
};

// Records whose parameter `scaling` is strong or weak; a run to quality keeps the global batch, which is strong.
// At one world size the layout on the fewest nodes is taken. The order of runs and records does not matter.
SeriesSet find_series(const RunSet& runs, const Likenesses& likenesses);

// The time of a case: the named metric in seconds, else the median of its samples, else of its slowest rank.
std::optional<Estimate> time_of(const Entry& entry, std::string_view metric);

}  // namespace assay::report::scaling
