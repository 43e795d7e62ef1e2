// Finds the collective records that form lines over message sizes, and the lines that form series over world sizes.
#pragma once

#include "reports/scaling/series.h"

#include <string>
#include <vector>

namespace assay::report::scaling {

struct MessagePoint {
  double bytes = 0;  // S by nccl-tests' convention, as used
  Estimate time;     // seconds of one call
  std::vector<Entry> entries;
};

// One world size: messages of ascending size.
struct MessageLine {
  int ranks = 2;
  std::vector<MessagePoint> points;
};

// Calls with the same op, dtype, buffers, batching, implementation, machine and protocol; never across algorithms, if
// the records name them.
struct CollectiveSeries {
  std::string title;
  std::string op;
  Likeness likeness;
  std::vector<MessageLine> lines;  // ascending ranks, from 2 on
};

struct CollectiveSet {
  std::vector<CollectiveSeries> series;  // sorted by title
  std::vector<Excluded> excluded;
};

CollectiveSet find_collectives(const RunSet& runs, const Likenesses& likenesses);

}  // namespace assay::report::scaling
