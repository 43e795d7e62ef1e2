// What the matrix of pairs says in words: which link, or which member, is the slow one.
#pragma once

#include "harness/sampling/sampler.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::collective {

// Seconds a message by sender (row) and receiver (column); nothing on the diagonal.
using PairTimes = std::vector<std::vector<std::optional<RoundResult>>>;

enum class Members { hosts, ranks };

// "slow host c: ...", "slow rank 1: ...", "slow link a -> b: ...", by find_slow_pairs; the worst first, 20 of them.
// `names`: those of the hosts, or "rank 1". Nothing for fewer than three members.
std::vector<std::string> name_slow(const PairTimes& times, const std::vector<std::string>& names, Members members);

}  // namespace assay::collective
