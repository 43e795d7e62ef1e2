// Exact predictors of the language, for the losses that no model can beat.
#pragma once

#include "workloads/data/markov_chains.h"

#include <span>
#include <vector>

namespace assay::data {

// Losses in nats of the targets tokens[1 ...] of one sequence, for a predictor that knows the chains but must find out
// which one it reads: the posterior over K is carried from token to token. Appends to `losses`.
void append_causal_losses(const MarkovChains& chains, std::span<const std::int32_t> tokens,
                          std::vector<double>& losses);
// The sum of the same for a predictor that is told the chain.
double causal_entropy(const MarkovChains& chains, int chain, std::span<const std::int32_t> tokens);

// What is known of a sequence's next token from the last alone, over all chains and the first `length` steps of a
// sequence: the best bigram table (V, V).
std::vector<double> best_bigram(const MarkovChains& chains, std::int64_t length);
// How often each symbol stands at the first `length` places of a walk (V).
std::vector<double> symbol_shares(const MarkovChains& chains, std::int64_t length);

// A run of symbols drawn from one chain, as an encoder sees it: symbols, or `masked_symbol` where they are hidden.
inline constexpr std::int32_t masked_symbol = -1;
struct MaskedSegment {
  std::span<const std::int32_t> seen;
  std::span<const std::int32_t> targets;  // the true symbol where it must be guessed, else negative
};

// Losses of the targets of one sequence of segments that share a hidden chain: the posterior of each guessed symbol
// given everything seen, by the forward-backward recursion (Rabiner, Proc. IEEE 1989) over each chain, with what
// masking does to a symbol as the emission. `chain` negative: it is not known. Appends to `losses`.
void append_masked_losses(const MarkovChains& chains, int chain, std::span<const MaskedSegment> segments,
                          std::vector<double>& losses);
// The loss of one target for a predictor that sees what stands in its place, but no other token.
double lone_masked_loss(const std::vector<double>& shares, std::int32_t seen, std::int32_t target);

}  // namespace assay::data
