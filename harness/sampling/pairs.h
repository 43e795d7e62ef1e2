// Rounds of pairs, and what is to blame if some are slow: a link, or a member with all of its links.
#pragma once

#include "harness/sampling/sampler.h"
#include "harness/statistics/outliers.h"

#include <optional>
#include <span>
#include <vector>

namespace assay {

// The circle schedule of a round-robin tournament (R. Schurig, Deutsche Schachzeitung, 1886): every pair once, in n-1
// rounds for an even number of members and n for an odd one; no member has two partners in a round.
int pairing_rounds(int members);
// The partner in a round; absent if the member sits out.
std::optional<int> partner_of(int member, int round, int members);

// Seconds per message from one member to another; each pair once if both ways were measured together.
struct PairTime {
  int from = 0, to = 0;
  RoundResult time;
};

// `times`: its time over the median of all.
struct SlowMember {
  int member = 0;
  double times = 0;
  bool sending = false, receiving = false;
};
struct SlowPair {
  int from = 0, to = 0;  // the slow way, or one of the two
  double times = 0;
  bool both_ways = false;
};
struct SlowPairs {
  std::vector<SlowMember> members;
  std::vector<SlowPair> pairs;
};

enum class Ways {
  apart,    // a time for each way of a pair
  together  // one time per pair
};

// Finds slow members and pairs, worst first.
//
// A member's time of sending (or receiving, or of both if they go together) is the time of its fastest link: if even
// this link is slow, the member is slow; with a single link the two cannot be distinguished. Links of slow members are
// set aside, and each of the others is compared with all of them. A time is slow if it lies 3.5 robust standard
// deviations (outliers.h) above the median of three or more, and `min_share` above it with the lower end of its 95 %
// interval too; the deviation counts as at least what the intervals leave open.
SlowPairs find_slow_pairs(std::span<const PairTime> all, int members, Ways ways, double min_share = outlier_share);

}  // namespace assay
