// Naming the rank that is slower than the others.
#pragma once

#include <optional>
#include <span>

namespace assay {

struct Straggler {
  int rank = 0;
  double ratio = 0;  // its pace over the median of the others'
};

// The slowest rank, when it takes 1.5 times the median of the others or more: beyond what healthy ranks differ by, on
// shared machines too. `paces` holds seconds of work a rank (Measurement::rank_paces); nothing below two ranks, or
// where one of them is not known (0). Differences below 10 us are the ranks' arrival.
std::optional<Straggler> find_straggler(std::span<const double> paces);

}  // namespace assay
