// Which collective records form a line over message sizes, and which lines one form over world sizes.
#pragma once

#include "reports/scaling/series.h"

#include <string>
#include <vector>

namespace assay::report::scaling {

struct MessagePoint {
  double bytes = 0;  // S by nccl-tests' convention, as used
  Estimate time;     // of one call, seconds
  std::vector<Entry> entries;
};

// One world size: messages of ascending size.
struct MessageLine {
  int ranks = 2;
  std::vector<MessagePoint> points;
};

// Calls that are alike in op, dtype, buffers, batching, implementation, machine, protocol: never across algorithms,
// where the records name them.
struct CollectiveSeries {
  std::string title;
  std::string op;
  Likeness likeness;
  std::vector<MessageLine> lines;  // ascending ranks, from 2 on
};

struct CollectiveSet {
  std::vector<CollectiveSeries> series;  // by title
  std::vector<Apart> apart;
};

CollectiveSet find_collectives(const RunSet& runs, const Likenesses& likenesses);

}  // namespace assay::report::scaling
