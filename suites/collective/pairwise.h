// Measures every pair of hosts, to find slow links and slow hosts.
#pragma once

#include "harness/plan/case.h"
#include "harness/sampling/sampler.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::collective {

inline constexpr const char* pairwise_op = "pairwise";  // one rank per host; on a single host: every rank
inline constexpr const char* rails_op = "rails";        // every rank, with those of its number on other hosts

struct PairwiseParams {
  std::size_t bytes = 0;
  DType dtype = DType::f32;
  Protocol::Batching batching = Protocol::Batching::batched;
  bool in_place = false;
  bool registered = false;
  bool rails = false;
};

// Why `op`, which measures in rounds of smaller worlds, has no such form; absent: it has.
std::optional<std::string> why_unsupported(const PairwiseParams& params, std::string_view op);
// Why hosts, by rank, have no rails between them; `same`: what measures the only one. Absent: they have.
std::optional<std::string> why_no_rails(const std::vector<std::string>& hosts, std::string_view same);

// Every member sends to every other. Pairs are arranged in the rounds of a tournament, so that no end of a link is
// shared, one direction after the other; all rails are busy at the same time. Messages up to 32 KiB go back and
// forth, and the time is for one way (as in the OSU latency benchmark, timed by the rank that starts); larger ones
// stream one way until the last has arrived. The record holds the matrix of the medians of every direction; of
// rails the slowest of every two hosts, and a matrix of each rail.
std::unique_ptr<Case> make_pairwise(const PairwiseParams& params);

// Names the slow links and members that a matrix of pairs shows.

// Seconds per message by sender (row) and receiver (column); the diagonal is empty.
using PairTimes = std::vector<std::vector<std::optional<RoundResult>>>;

enum class Members { hosts, ranks };

// "slow host c: ...", "slow rank 1: ...", "slow link a -> b: ...", as found by find_slow_pairs: the worst 20, worst
// first. `names` are host names, or "rank 1". Empty for fewer than three members.
std::vector<std::string> name_slow(const PairTimes& times, const std::vector<std::string>& names, Members members);

}  // namespace assay::collective
