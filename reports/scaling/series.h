// Finds series: training cases that differ only in world size.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/model/estimate.h"
#include "reports/scaling/likeness.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay::report::scaling {

// Records left out of the figures, listed by case and reason.
struct Excluded {
  std::string title;
  std::vector<int> ranks;  // ascending, unique
  std::string reason;
  std::size_t records = 0;
  bool minor = false;  // reported elsewhere (skipped, broken) or not expected here: listed only in the table
  Entry first;         // in the order in which they were added
};

class ExclusionList {
 public:
  void add(const std::string& title, const std::string& reason, const Entry& entry, bool minor = false);
  std::vector<Excluded> list();  // sorted by title, then reason

 private:
  std::map<std::pair<std::string, std::string>, Excluded> lines_;
};

// Strong scaling keeps the global batch, weak scaling the batch per rank.
enum class Mode { strong, weak };

struct WorldPoint {
  int ranks = 1;
  int nodes = 1;
  Estimate time;                             // seconds of a step or a run to quality, on the slowest rank
  std::optional<double> communication = {};  // the fraction of the step: communication_share()
  std::vector<Entry> entries;                // one per run
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

// Scaling efficiency of a series against its smallest world size.

// Strong: N0 T(N0) / (N T(N)); weak: T(N0) / T(N), with N0 the smallest world size of the series. 1 is linear scaling.
// The interval is that of the ratio of both times (see ratio()).
Estimate efficiency(Mode mode, const Estimate& base_time, int base_ranks, const Estimate& time, int ranks);
// The efficiency of a point; that of the first is 1 by definition, without an interval.
Estimate efficiency(const Series& series, std::size_t point);

}  // namespace assay::report::scaling
