// Rounds of pairs, and whose fault it is when some of them are slow: a link, or a host with all of its links.
#pragma once

#include "harness/measure/sampler.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace assay::collective {

// The circle schedule of a round-robin tournament (R. Schurig, Deutsche Schachzeitung, 1886): every pair once, in
// n-1 rounds for an even number of members and n for an odd one, in none of which a member has two partners.
int pairing_rounds(int members);
// The partner in a round; nothing for who sits out.
std::optional<int> partner_of(int member, int round, int members);

// Seconds a message by sender (row) and receiver (column); nothing on the diagonal.
using PairTimes = std::vector<std::vector<std::optional<RoundResult>>>;

// What is slow by its time, in words: "slow host c: ...", "slow link a -> b: ...". Nothing for fewer than three
// members.
//
// A host's time of sending (receiving) is that of its fastest link: one whose fastest is slow is slow itself, whatever
// the others are. Links of such hosts are set aside; each of the rest is compared with all of them. Slow is what lies
// 3.5 robust standard deviations (outliers.h) and 3 % above the median, with the lower end of its own 95 % interval
// too; the deviation is taken for no less than what the intervals themselves leave open.
std::vector<std::string> name_slow(const PairTimes& times, const std::vector<std::string>& names);

}  // namespace assay::collective
