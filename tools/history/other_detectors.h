// What other systems do with nightly figures, to compare with.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace assay::history {

// A step that a detector reports on night `seen` at night `at`.
struct Report {
  std::size_t seen = 0;
  std::size_t at = 0;
};

// E-divisive with a t test instead of permutations (Matteson & James, JASA 2014; Fleming et al., "Hunter", ICPE 2023),
// p below .001, each night on the last 100; as Apache Otava. A place within 7 nights of an earlier one is no new
// report.
std::vector<Report> e_divisive(std::span<const double> values);
// The night against the 64 before, Student's t at .99 on either side; as Bencher.
std::vector<Report> t_of_64(std::span<const double> values);
// The night further than two standard deviations from the mean of the 30 before.
std::vector<Report> two_sigma(std::span<const double> values);

}  // namespace assay::history
