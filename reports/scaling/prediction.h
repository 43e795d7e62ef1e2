// What the next world sizes would give: fitted on all sizes but the largest, judged on it.
#pragma once

#include "reports/scaling/fit.h"
#include "reports/scaling/series.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::report::scaling {

inline constexpr std::size_t fewest_worlds = 4;

struct Predicted {
  int ranks = 1;
  Estimate time;        // seconds
  Estimate efficiency;  // against the series' smallest world size
};

struct Prediction {
  std::string model;                   // for people: "compute / N + serial"
  int held_out = 1;                    // ranks of the largest size, which took no part in the fit
  double held_out_time = 0;            // measured, seconds
  Estimate held_out_predicted;         // by the fit; its interval does not know the hold-out error
  double error = 0;                    // predicted / measured - 1 on the largest size
  double rms = 0;                      // relative, on the sizes that were fitted
  std::vector<Predicted> next;         // twice and four times the largest
  std::vector<int> undetermined = {};  // of those, where the interval would span more than ten times either way

  double at(double ranks) const;  // seconds, by the fit

  Mode mode = Mode::strong;
  std::size_t candidate = 0;  // of the mode's models
  Terms coefficients{};       // of its terms, seconds
};

// Absent with fewer than fewest_worlds world sizes.
//
// Models are sums of what a data-parallel step may consist of, with coefficients >= 0: compute (over N when the batch
// of all is kept), what no rank shares, and communication that grows as a ring's latency (N - 1), a tree's (log2 N) or
// a ring's volume ((N - 1)/N); forms in alpha_beta.h. The one with the least residual variance on the fitted sizes is
// taken, the one of fewer terms where they are equal.
//
// The interval is, on logarithms, the root of the squares of the fit's own (carried to N, see TermFit::half_width) and
// of the hold-out error, which is taken to grow from the largest fitted size on in proportion to the ranks, as the
// fastest term that was overlooked would; then widened to hold what every other model says that the fitted sizes do not
// refute.
std::optional<Prediction> predict(const Series& series);

}  // namespace assay::report::scaling
