// Finds series: training cases that differ only in world size.
#pragma once

#include "reports/scaling/estimate.h"
#include "reports/scaling/excluded.h"
#include "reports/scaling/likeness.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::report::scaling {

// Strong scaling keeps the global batch, weak scaling the batch per rank.
enum class Mode { strong, weak };

struct WorldPoint {
  int ranks = 1;
  int nodes = 1;
  Estimate time;                       // seconds of a step or a run to quality, on the slowest rank
  std::optional<double> exposed = {};  // exposed communication as a fraction of the step
  std::vector<Entry> entries;          // one per run
};

struct Series {
  std::string title;
  Mode mode = Mode::strong;
  std::string figure;  // the metric behind `time`: step_time, time_to_quality
  Likeness likeness;
  std::vector<WorldPoint> points;  // ascending ranks, at least two
};

// A case measured at only one world size.
struct Lone {
  std::string title;
  int ranks = 1;
  Entry entry;
};

struct SeriesSet {
  std::vector<Series> series;  // sorted by mode, then title
  std::vector<Excluded> excluded;
  std::vector<Lone> lone;
};

// From records whose parameter `scaling` is strong or weak; a run to quality keeps the global batch, so it is strong.
// At each world size uses the layout on the fewest nodes. The order of runs and records does not matter.
SeriesSet find_series(const RunSet& runs, const Likenesses& likenesses);

// The time of a case: the named metric in seconds, else the median of its samples, else that of its slowest rank.
std::optional<Estimate> time_of(const Entry& entry, std::string_view metric);

}  // namespace assay::report::scaling
