// Prediction limits: how low or high one more value may be, from few values that vary between groups (machines) and
// within them (runs of a machine).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace assay {

// Estimates of a variable with one-way random effects: value = mean + group's effect + value's own.
struct Prediction {
  std::size_t units = 0;          // independent units: groups, or values of the only group
  double mean = 0;                // mean of the units
  std::optional<double> between;  // standard deviation between groups; with `within` absent, of their single values
  std::optional<double> within;   // deviation of values of one group; absent if no group has two
  double unit_sigma = 0;          // standard deviation of the units, from which `mean` is
  double sigma = 0;               // deviation of one new value

  // The new value is below mean - margin(error), and above mean + margin(error), with at most `error` each, in (0,
  // 0.5]: less for normal effects, about that for heavier tails.
  double margin(double error) const { return margin(error, units); }
  // The same if as many units, at least 2, had shown these standard deviations.
  double margin(double error, std::size_t count) const;
};

// Predicts one value of a new group, from at least two groups of at least one value each, oldest first. Unweighted
// means of groups (Thomas & Hultquist, "Interval estimation for the unbalanced case of the one-way random effects
// model", Annals of Statistics 1978). The variance of a new value is a sum of two mean squares; Student's t with the
// fewer degrees of freedom, here those of groups, bounds a normal one's error whatever their ratio (Hajek,
// "Inequalities for the generalized Student's distribution and their applications", 1962). If repeats are too few for
// that, only the last value of each group counts, and its variance is one mean square.
Prediction predict_new_group(std::span<const std::vector<double>> groups);

// Predicts one more value of the same group, from at least two.
Prediction predict_same_group(std::span<const double> values);

}  // namespace assay
