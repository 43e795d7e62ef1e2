// The verdict of one floor on one record.
#pragma once

#include "reports/acceptance/acceptance.h"

#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

// Whether a key matches a pattern, in which * stands for any run of characters, / included.
bool key_matches(std::string_view pattern, std::string_view key);

// Whether the record is of the device, world size and labels that the floor names.
bool concerns(const Floor& floor, const Entry& entry);

// pass, fail, or inconclusive where the interval holds the limit. Without an interval the value alone decides.
Outcome judge(double value, const std::optional<Interval>& range, Bound bound, double limit);

// How far beyond the limit a value lies, as a share of the limit; below 0 where the limit is held.
double shortfall(double value, Bound bound, double limit);

// "14 % below the floor", "3.1 % above".
std::string distance_text(double value, Bound bound, double limit);

// A record as far as it can be judged without a limit: refused or unusable with the reason, or pass with the figure,
// its interval (ordered, around the value; absent when its bounds are not numbers), its place and whose it is.
// `run_hosts` are those of its run, for records that name none.
Judgement look_at(const Floor& floor, const Entry& entry, const std::vector<std::string>& run_hosts);

// "rank 3, host b, NVIDIA H200", as far as it is told.
std::string rank_text(const RankResult& rank, bool with_number);

// Gives a judgement that has a figure its limit and outcome.
void decide(Judgement& judgement, const Floor& floor, double limit);

}  // namespace assay::report
