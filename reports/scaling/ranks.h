// How evenly the ranks of a case work: the fastest, the slowest, and which that is.
#pragma once

#include "reports/scaling/likeness.h"

#include <string>
#include <vector>

namespace assay::report::scaling {

struct RankSpread {
  std::string title;
  int ranks = 0;       // ranks of the world
  double fastest = 0;  // the lowest of the ranks' own medians, seconds; over several records the geometric mean
  double slowest = 0;
  double spread = 0;  // slowest / fastest - 1
  int slowest_rank = 0;
  std::string host;  // host of the slowest rank; empty if unknown
  std::string device;
  std::size_t records = 0;
  std::size_t times_slowest = 0;  // records in which that rank was the slowest
  Entry first;
};

// A larger spread is worth a look: healthy GPUs of a node differ by 3 to 5 % (stas00/ml-engineering).
inline constexpr double straggling = 0.05;

// The spread of every case with at least two ranks and two medians in seconds. Combines records of one case, world
// size, likeness and hosts. Largest spread first. Leaves out injected and broken records, but keeps records that are
// not comparable: a straggler matters on a shared machine too.
std::vector<RankSpread> rank_spreads(const RunSet& runs, const Likenesses& likenesses);

}  // namespace assay::report::scaling
