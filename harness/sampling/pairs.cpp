#include "harness/sampling/pairs.h"

#include <algorithm>
#include <cmath>

namespace assay {

namespace {

constexpr double interval_sigmas = 1.96;  // half of a 95 % interval

std::size_t place_of(int i) { return static_cast<std::size_t>(i); }

// How slow something is, as a multiple of the median; 0 if it is not slow.
class Judge {
 public:
  Judge(const std::vector<RoundResult>& all, double min_share) : min_share_(min_share) {
    std::vector<double> medians, halves;
    for (const RoundResult& one : all) {
      medians.push_back(one.median);
      if (std::isfinite(one.high - one.low)) halves.push_back((one.high - one.low) / 2);
    }
    if (medians.size() < 3) return;
    others_ = robust(medians);
    // A MAD is 0.6745 standard deviations.
    if (!halves.empty()) others_.mad = std::max(others_.mad, 0.6745 * median(halves) / interval_sigmas);
    enough_ = others_.median > 0;
  }
  double times_slow(const RoundResult& one) const {
    if (!enough_ || one.median < others_.median || !is_outlier(one.median, others_)) return 0;
    const double low = std::isnan(one.low) ? one.median : one.low;
    return low >= (1 + min_share_) * others_.median ? one.median / others_.median : 0;
  }

 private:
  double min_share_;
  Robust others_;
  bool enough_ = false;
};

// How slow each member is at its end of these messages.
class Ends {
 public:
  explicit Ends(int members) : best_(place_of(members)), links_(place_of(members)) {}
  void add(int member, const RoundResult& time) {
    auto& mine = best_[place_of(member)];
    if (!mine || time.median < mine->median) mine = time;
    ++links_[place_of(member)];
  }
  std::vector<double> slow(double min_share) const {
    std::vector<RoundResult> all;
    for (std::size_t i = 0; i < best_.size(); ++i)
      if (links_[i] > 1) all.push_back(*best_[i]);
    const Judge judge(all, min_share);
    std::vector<double> times;
    for (std::size_t i = 0; i < best_.size(); ++i) times.push_back(links_[i] > 1 ? judge.times_slow(*best_[i]) : 0);
    return times;
  }

 private:
  std::vector<std::optional<RoundResult>> best_;
  std::vector<int> links_;
};

// Equal elements keep their order.
template <typename Slow>
void worst_first(std::vector<Slow>& all) {
  std::ranges::stable_sort(all, std::ranges::greater(), &Slow::times);
}

}  // namespace

int pairing_rounds(int members) { return members < 2 ? 0 : members - 1 + members % 2; }

// If the number of members is even, one stays in place and the others rotate: i and j meet in round i + j modulo the
// number that rotates. A member that would be paired with itself meets the fixed member, or sits out the round.
std::optional<int> partner_of(int member, int round, int members) {
  const int turning = members - 1 + members % 2;
  const auto other = [&](int i) { return ((round - i) % turning + turning) % turning; };
  if (member == turning) {
    for (int i = 0; i < turning; ++i)
      if (other(i) == i) return i;
  }
  if (other(member) != member) return other(member);
  return members % 2 == 0 ? std::optional(turning) : std::nullopt;
}

SlowPairs find_slow_pairs(std::span<const PairTime> all, int members, Ways ways, double min_share) {
  Ends senders(members), receivers(members);
  for (const PairTime& one : all) {
    senders.add(one.from, one.time);
    (ways == Ways::together ? senders : receivers).add(one.to, one.time);
  }
  const std::vector<double> sending = senders.slow(min_share);
  const std::vector<double> receiving = ways == Ways::together ? sending : receivers.slow(min_share);
  SlowPairs found;
  for (int i = 0; i < members; ++i)
    if (const double times = std::max(sending[place_of(i)], receiving[place_of(i)]); times > 0)
      found.members.push_back({i, times, sending[place_of(i)] > 0, receiving[place_of(i)] > 0});
  worst_first(found.members);

  std::vector<RoundResult> rest;
  const auto counts = [&](const PairTime& one) {
    if (ways == Ways::together) return sending[place_of(one.from)] == 0 && sending[place_of(one.to)] == 0;
    return sending[place_of(one.from)] == 0 && receiving[place_of(one.to)] == 0;
  };
  for (const PairTime& one : all)
    if (counts(one)) rest.push_back(one.time);
  const Judge judge(rest, min_share);
  std::map<std::pair<int, int>, SlowPair> pairs;  // keyed by the lower and the higher end
  for (const PairTime& one : all) {
    const double times = counts(one) ? judge.times_slow(one.time) : 0;
    if (times == 0) continue;
    SlowPair fresh{one.from, one.to, times, ways == Ways::together};
    const auto [at, first] = pairs.try_emplace(std::minmax(one.from, one.to), fresh);
    if (!first) at->second = {at->first.first, at->first.second, std::max(at->second.times, times), true};
  }
  for (const auto& [ends, pair] : pairs) found.pairs.push_back(pair);
  worst_first(found.pairs);
  return found;
}

}  // namespace assay
