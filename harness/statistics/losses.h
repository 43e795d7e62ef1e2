// Finds who of many equals is slow, in many cases at once: limits that hold for all comparisons together.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace assay {

// Centre and standard deviation of values of which less than half may be anything.
struct Spread {
  double center = 0;
  double sigma = 0;
  double freedom = 0;  // degrees of freedom that sigma is worth
};
// At least three values. From ten on: the standard deviation of those within three robust deviations of the median.
Spread robust_spread(std::span<const double> values);

// One figure of each member of a fleet, as the logarithm of a speed; NaN: the member has none.
struct FleetCase {
  std::vector<double> speeds;
  double margin = 0;      // a loss (of the logarithm) up to this is never slow
  bool together = false;  // whether it counts in what members lose in all cases together
};

struct LossLimit {
  std::size_t members = 0;                                 // with a figure; below three the rest is not known
  double center = 0;                                       // the median
  double limit = std::numeric_limits<double>::infinity();  // the loss, as a logarithm, beyond which a member is slow
  double found = std::numeric_limits<double>::infinity();  // the smallest loss that is beyond it nine times in ten
  // Members of the slower of two groups that are far apart, where either may be the odd one.
  std::vector<std::size_t> slower_group = {};
};

struct FleetLosses {
  std::size_t comparisons = 0;
  std::vector<LossLimit> cases;
  // The loss of each member in all its cases, weighted by how much each case tells; NaN: it has fewer than two.
  std::vector<double> together;
  LossLimit of_together;
};

// Limits such that equal members with normal noise give a loss beyond any of them with probability `false_fails`:
// quantiles for false_fails / comparisons of Student's t. The spread of a case is that of its members, and is drawn
// towards that of all cases as far as these are alike (credibility: Buehlmann 1967; of variances: Smyth 2004), since
// three hosts say little about their own. All cases have as many speeds.
FleetLosses fleet_losses(std::span<const FleetCase> cases, double false_fails);

}  // namespace assay
