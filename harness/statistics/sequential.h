// Is one side faster than the other? From pairs of measurements, judged after every pair: the error rate holds however
// and whenever the pairs end.
#pragma once

#include "harness/statistics/direction.h"
#include "harness/statistics/statistics.h"

#include <array>
#include <cstddef>
#include <vector>

namespace assay {

// Tests of log ratios of speed d_i = log(speed of B / speed of A), one per pair.
//
// Assumed: in each pair a fair coin decides which side goes first, and B's speed is exp(theta) times what A's would
// have been in its place. Then d_i - theta has either sign with probability 1/2, given its size and all that came
// before, whatever the load does. Neither a distribution, nor independence, nor constant noise is assumed.
//
// For a hypothesis theta and a side, a bettor starts with 1 and stakes a part of that wealth on d_i - theta having
// that sign. The part may depend on earlier pairs, and may grow with the size of d_i - theta. If theta is true, the
// wealth is a martingale and ever reaches 1/alpha with probability at most alpha (Ville 1939); so theta is refuted at
// 1/alpha. Testing by betting: Waudby-Smith & Ramdas, JRSS B 2024; bets on signs, given the sizes: Ramdas, Ruf, Larsson
// & Koolen, "Admissible anytime-valid sequential inference must rely on nonnegative martingales", 2020; the values that
// are not refuted form an interval valid at all times: Howard, Ramdas, McAuliffe & Sekhon, Annals of Statistics 2021.
class PairedTest {
 public:
  // tolerance in (0, 1); error in (0, 1): the probability that the verdict is ever wrong.
  PairedTest(double tolerance, double error);

  // A finite log ratio.
  void add(double log_ratio);

  // same: changes of the tolerance or more are refuted, in both directions, and the estimate is within it.
  // faster, slower: "no change" is refuted, and the estimate is beyond the tolerance.
  // With probability at least 1 - error, at every number of pairs: if nothing changed, it is neither faster nor slower;
  // if the change is at least the tolerance, it is not the same. It gets decided for every change that is not exactly
  // the tolerance.
  Direction verdict() const;

  // A robust estimate of theta; 0 without pairs.
  double estimate() const;
  // Contains theta with probability 1 - error at all times. Infinite where nothing is refuted yet. Agrees with the
  // verdict: within the tolerance if `same`, without 0 if `faster` or `slower`.
  Interval interval() const;
  std::size_t pairs() const { return steps_.size(); }

 private:
  static constexpr std::size_t bettors = 5;

  // Facts from earlier pairs, by which bettors choose their stakes.
  struct Knowledge {
    double clip = 0;    // sizes count up to this
    double gain = 0;    // information about a shift per unit of size: 1 / variance for normal noise
    double centre = 0;  // estimate of theta
  };
  struct Step {
    double value = 0;
    Knowledge known;
  };
  struct Bets {
    double theta = 0;
    int side = 1;  // 1: on theta being too low, -1: too high
    std::array<double, bettors> logs = {};
  };

  void learn();
  void settle(Bets& bets, const Step& step) const;
  // The logarithm of the bettors' common wealth times the error granted to it: refuted at 0 or above.
  double evidence(const Bets& bets) const;
  double evidence(double theta, int side) const;
  bool refuted(std::size_t index) const { return evidence(decisive_[index]) >= 0; }
  double end_of_interval(int side, double beyond) const;

  double error_;
  double up_, down_;  // the tolerance as log ratios
  Knowledge known_;
  std::size_t next_lesson_ = 1;
  std::vector<Step> steps_;
  // No change, bet on too low and too high; the tolerance up, too high; down, too low.
  std::array<Bets, 4> decisive_;
};

}  // namespace assay
