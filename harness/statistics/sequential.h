// Is one side faster than the other? From pairs of measurements, judged after every pair: the error rate holds however
// and whenever the pairs end.
#pragma once

#include "harness/statistics/statistics.h"

#include <array>
#include <cstddef>
#include <vector>

namespace assay {

enum class PairVerdict { faster, slower, same, undecided };

// Tests of log ratios of speed d_i = log(speed of B / speed of A), one per pair.
//
// Assumed: in each pair a fair coin decides which side goes first, and B's speed is exp(theta) times what A's would have
// been in its place. Then d_i - theta has either sign with probability 1/2, given its size and all that came before,
// whatever the load does. No distribution, no independence, no constant noise is assumed.
//
// For a hypothesis theta a bettor who starts with 1 stakes a part b < 1 of his wealth on the sign of each d_i - theta. b
// may depend on its size and on earlier pairs. The wealth is a martingale if theta is true, so it ever reaches 1/alpha
// with probability at most alpha (Ville 1939; Ramdas, Ruf, Larsson & Koolen, "Admissible anytime-valid sequential
// inference must rely on nonnegative martingales", 2020, section on symmetry; Waudby-Smith & Ramdas, "Estimating means
// of bounded random variables by betting", JRSS B 2024). The values of theta that are not refuted form the interval
// (Howard, Ramdas, McAuliffe & Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence sequences", Annals of
// Statistics 2021).
class PairedTest {
 public:
  // tolerance in (0, 1); error in (0, 1): the probability that the verdict is ever wrong.
  PairedTest(double tolerance, double error);

  // A finite log ratio.
  void add(double log_ratio);

  // faster, slower: no change is refuted, with error / 2 for each side, and the estimate is beyond the tolerance.
  // same: changes of the tolerance or more are refuted, in both directions.
  // So with probability at least 1 - error, at any number of pairs: if nothing changed, it is neither faster nor slower;
  // if the change is at least the tolerance, it is not the same.
  PairVerdict verdict() const;

  // Estimate of theta: 0 without pairs.
  double estimate() const;
  // Contains theta with probability 1 - error at all times; infinite where nothing is refuted yet. Agrees with the
  // verdict.
  Interval interval() const;
  std::size_t pairs() const { return steps_.size(); }

 private:
  struct Step {
    double value = 0;
  };
  std::vector<Step> steps_;
};

}  // namespace assay
