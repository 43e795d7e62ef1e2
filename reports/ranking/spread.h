// How much machines of one kind differ, and from what difference on two kinds differ in speed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace assay::report::ranking {

// The speeds of one kind of machine.
struct Side {
  std::vector<double> logs;  // natural logarithm of the speed of each machine (mean over its runs); never empty
  double within = 0;         // standard error of their mean by the samples of the runs alone; 0 if unknown

  double mean() const;
};

// The standard deviation between machines of one kind, pooled over all kinds of which several machines were measured.
struct Spread {
  double sigma = 0;
  double freedom = 0;  // degrees of freedom; 0: one machine of each kind, so sigma is unknown
};
Spread spread_of(std::span<const Side> sides);

// With one machine of each kind, smaller differences may come from the machines that happened to be measured: of 3,500
// rented GPUs, those of one type differed by up to 34.5 % (H100 PCIe; William & Mary, Jefferson Lab and Silicon Data).
inline constexpr double undecided_difference = 0.15;

inline constexpr double normal_95 = 1.96;  // half a 95 % interval of a normal distribution, in standard deviations

// From this difference of logarithms on, two sides differ: by Student's t on the pooled spread, at an error of 5 % over
// all pairs of `sides` kinds (Bonferroni); with one machine each by undecided_difference and the runs' own noise.
double decisive_difference(const Side& a, const Side& b, const Spread& spread, std::size_t sides);

// Half the 95 % interval of a side's mean: between machines, or within runs if the spread is unknown. Absent if neither
// is known.
std::optional<double> half_interval(const Side& side, const Spread& spread);

// How many machines of each of two kinds would show a difference of `log`, if machines of one kind differ as much as
// undecided_difference assumes. At least 2.
std::size_t machines_to_decide(double log);

}  // namespace assay::report::ranking
