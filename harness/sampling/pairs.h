// Rounds of pairs, and whose fault it is when some of them are slow: a link, or a member with all of its links.
#pragma once

#include "harness/sampling/sampler.h"
#include "harness/statistics/outliers.h"

#include <optional>
#include <span>
#include <vector>

namespace assay {

// The circle schedule of a round-robin tournament (R. Schurig, Deutsche Schachzeitung, 1886): every pair once, in
// n-1 rounds for an even number of members and n for an odd one, in none of which a member has two partners.
int pairing_rounds(int members);
// The partner in a round; nothing for who sits out.
std::optional<int> partner_of(int member, int round, int members);

// Seconds a message took from one member to another; where both ways were measured at once, each pair stands once.
struct PairTime {
  int from = 0, to = 0;
  RoundResult time;
};

// `times`: its time over the median of its kind.
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
  apart,    // each way of a pair has its time
  together  // one time a pair
};

// What is slow by its time, the worst first.
//
// A member's time of sending (receiving; of its messages where both go together) is that of its fastest link: one whose
// fastest is slow is slow itself, whatever the others are; with one link alone it cannot be told from that. Links of
// such members are set aside; each of the rest is compared with all of them. Slow is what lies 3.5 robust standard
// deviations (outliers.h) and `min_share` above the median of three or more, with the lower end of its own 95 %
// interval too; the deviation is taken for no less than what the intervals themselves leave open.
SlowPairs find_slow_pairs(std::span<const PairTime> all, int members, Ways ways, double min_share = outlier_share);

}  // namespace assay
