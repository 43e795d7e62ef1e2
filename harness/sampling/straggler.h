// Finds the rank that is slower than the others.
#pragma once

#include <optional>
#include <span>

namespace assay {

struct Straggler {
  int rank = 0;
  double ratio = 0;  // its pace over the median of the others'
};

// The slowest rank, if it takes at least 1.5 times the median of the others: more than healthy ranks differ by, even on
// shared machines. `paces` holds seconds of work per rank (Measurement::rank_paces); absent for fewer than two ranks,
// or if a pace is unknown (0). Differences below 10 us come from the ranks' arrival.
std::optional<Straggler> find_straggler(std::span<const double> paces);

}  // namespace assay
