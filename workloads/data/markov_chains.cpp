#include "workloads/data/markov_chains.h"

#include "harness/core/error.h"

#include <algorithm>

namespace assay::data {

MarkovChains::MarkovChains(std::int64_t symbols, int chains, std::uint64_t seed)
    : symbols_(symbols),
      chains_(chains),
      rng_(seed, "markov chains"),
      concentration_(static_cast<std::uint64_t>(std::min<std::int64_t>(symbols, 32))) {
  ASSAY_CHECK(symbols >= 1 && symbols <= INT32_MAX && chains >= 1);
  const std::int64_t rows = chains * symbols;
  const bool table = rows <= max_table_rows;
  urn_bits_ = table ? 12 : 6;
  if (!table) return;
  const std::size_t urn = std::size_t{1} << urn_bits_;
  balls_.resize(static_cast<std::size_t>(rows) * urn);
  probabilities_.resize(static_cast<std::size_t>(rows * symbols));
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    std::uint16_t* balls = balls_.data() + row * urn;
    double* probabilities = probabilities_.data() + row * static_cast<std::size_t>(symbols);
    for (std::size_t n = 0; n < urn; ++n) {
      const std::uint64_t bits = rng_.u64(row * urn + n);
      const std::uint64_t pick = (bits >> 32) * (concentration_ + 10 * n) >> 32;
      balls[n] = pick < concentration_
                     ? static_cast<std::uint16_t>((bits & 0xffffffffu) * static_cast<std::uint64_t>(symbols) >> 32)
                     : balls[(pick - concentration_) / 10];
      probabilities[balls[n]] += 1.0 / static_cast<double>(urn);
    }
  }
}

std::int32_t MarkovChains::ball(std::uint64_t row, std::uint64_t number) const {
  while (true) {
    const std::uint64_t bits = rng_.u64((row << urn_bits_) + number);
    const std::uint64_t pick = (bits >> 32) * (concentration_ + 10 * number) >> 32;
    if (pick < concentration_)
      return static_cast<std::int32_t>((bits & 0xffffffffu) * static_cast<std::uint64_t>(symbols_) >> 32);
    number = (pick - concentration_) / 10;
  }
}

void MarkovChains::walk(int chain, const Rng& rng, std::uint64_t draw, std::span<std::int32_t> out) const {
  auto symbol = static_cast<std::int32_t>(rng.below(draw, static_cast<std::uint64_t>(symbols_)));
  out[0] = symbol;
  const auto first_row = static_cast<std::uint64_t>(chain) * static_cast<std::uint64_t>(symbols_);
  const int unused = 16 - urn_bits_;
  std::uint64_t bits = 0;
  for (std::size_t i = 1; i < out.size(); ++i, bits >>= 16) {
    // One number draws four balls.
    if (i % 4 == 1) bits = rng.u64(draw + 1 + i / 4);
    const std::uint64_t number = (bits & 0xffffu) >> unused;
    const std::uint64_t row = first_row + static_cast<std::uint64_t>(symbol);
    symbol = has_table() ? balls_[(row << urn_bits_) + number] : ball(row, number);
    out[i] = symbol;
  }
}

}  // namespace assay::data
