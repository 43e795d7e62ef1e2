// Scaling efficiency of a series against its smallest world size.
#pragma once

#include "reports/scaling/series.h"

namespace assay::report::scaling {

// Strong: N0 T(N0) / (N T(N)); weak: T(N0) / T(N), with N0 the smallest world size of the series. 1 is linear scaling.
// The interval is that of the ratio of both times (see ratio()).
Estimate efficiency(Mode mode, const Estimate& base_time, int base_ranks, const Estimate& time, int ranks);
// The efficiency of a point; that of the first is 1 by definition, without an interval.
Estimate efficiency(const Series& series, std::size_t point);

}  // namespace assay::report::scaling
