// Names the slow links and members that a matrix of pairs shows.
#pragma once

#include "harness/sampling/sampler.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::collective {

// Seconds per message by sender (row) and receiver (column); the diagonal is empty.
using PairTimes = std::vector<std::vector<std::optional<RoundResult>>>;

enum class Members { hosts, ranks };

// "slow host c: ...", "slow rank 1: ...", "slow link a -> b: ...", as found by find_slow_pairs: the worst 20, worst
// first. `names` are host names, or "rank 1". Empty for fewer than three members.
std::vector<std::string> name_slow(const PairTimes& times, const std::vector<std::string>& names, Members members);

}  // namespace assay::collective
