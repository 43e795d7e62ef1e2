// The verdict of one floor on one record.
#pragma once

#include "harness/fitness/floors/check.h"

#include <string>
#include <string_view>
#include <vector>

namespace assay::fitness {

// pass, fail, or inconclusive if the interval contains the limit. Without an interval the value alone decides.
Outcome judge(double value, const std::optional<Interval>& range, Bound bound, double limit);

// How far beyond the limit a value is, as a fraction of the limit; negative if the limit is met.
double shortfall(double value, Bound bound, double limit);

// "14 % below the floor", "3.1 % above".
std::string distance_text(double value, Bound bound, double limit);

// What can be judged of a record without a limit: refused or unusable with the reason, or pass with the figure, its
// interval (ordered, around the value; absent if its bounds are not numbers), its place and where it comes from.
// `run_hosts` are the hosts of its run, for records that name none.
Judgement examine(const Floor& floor, const Entry& entry, const std::vector<std::string>& run_hosts);

// "rank 3, host b, NVIDIA H200", as far as known.
std::string rank_text(const RankResult& rank, bool with_number);

// For each rank, the figure that the record would have if all ranks were like it; its own, `value`, is the slowest's.
// For rates and times only; empty for one rank, or if ranks recorded no medians.
std::vector<double> rank_figures(const Record& record, double value, std::string_view unit);

// Sets limit and outcome of a judgement that has a figure.
void decide(Judgement& judgement, const Floor& floor, double limit);

}  // namespace assay::fitness
