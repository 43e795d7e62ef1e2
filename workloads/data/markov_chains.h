// K random Markov chains over V symbols, computed in integers: the same on every platform.
#pragma once

#include "harness/core/rng.h"

#include <cstdint>
#include <span>
#include <vector>

namespace assay::data {

// A row of a chain is an urn of balls, each with a symbol, and the next symbol is that of a ball drawn at random. Ball
// n has a new uniform symbol with probability c / (c + n), else the symbol of an earlier ball: a Pólya urn, whose
// frequencies follow a Dirichlet law of total concentration c (Blackwell and MacQueen, Annals of Statistics 1973). c is
// 0.1 per symbol for up to 32 symbols and 3.2 for more, so rows of large vocabularies are sparse.
class MarkovChains {
 public:
  // Up to this many rows (K V) are kept as tables, with urns of 4,096. Beyond, the symbol of a ball is computed when it
  // is drawn, from urns of 64, without using memory.
  static constexpr std::int64_t max_table_rows = 1024;

  MarkovChains(std::int64_t symbols, int chains, std::uint64_t seed);

  std::int64_t symbols() const { return symbols_; }
  int chains() const { return chains_; }
  bool has_table() const { return !balls_.empty(); }
  // Fills `out` with a walk of a chain from a uniform symbol; uses draws [draw, draw + draws_of(out.size())) of rng.
  void walk(int chain, const Rng& rng, std::uint64_t draw, std::span<std::int32_t> out) const;
  static std::uint64_t draws_of(std::size_t symbols) { return 1 + (symbols + 2) / 4; }

  // P(to | from), a multiple of 1 / 4,096; only if has_table().
  double probability(int chain, std::int64_t from, std::int64_t to) const {
    return probabilities_[static_cast<std::size_t>((chain * symbols_ + from) * symbols_ + to)];
  }
  // The row of probability() that starts at (chain, from).
  const double* row(int chain, std::int64_t from) const {
    return probabilities_.data() + (chain * symbols_ + from) * symbols_;
  }

 private:
  std::int32_t ball(std::uint64_t row, std::uint64_t number) const;

  std::int64_t symbols_;
  int chains_;
  Rng rng_;
  std::uint64_t concentration_;        // in tenths of a ball
  int urn_bits_;                       // log2 of the balls per row
  std::vector<std::uint16_t> balls_;   // (K, V, balls)
  std::vector<double> probabilities_;  // (K, V, V)
};

}  // namespace assay::data
