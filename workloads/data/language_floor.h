// Exact predictors of the language, which give the losses that no model can beat.
#pragma once

#include "workloads/data/markov_chains.h"

#include <span>
#include <vector>

namespace assay::data {

// Appends the losses in nats of the targets tokens[1 ...] of one sequence, for a predictor that knows the chains but
// not which one it reads: it updates its posterior over K with every token.
void append_causal_losses(const MarkovChains& chains, std::span<const std::int32_t> tokens,
                          std::vector<double>& losses);
// The sum of the losses for a predictor that knows the chain.
double causal_entropy(const MarkovChains& chains, int chain, std::span<const std::int32_t> tokens);

// The best bigram table (V, V): P(next token | last token) over all chains and the first `length` steps of a sequence.
std::vector<double> best_bigram(const MarkovChains& chains, std::int64_t length);
// The frequency of each symbol in the first `length` steps of a walk (V).
std::vector<double> symbol_frequencies(const MarkovChains& chains, std::int64_t length);

// A run of symbols drawn from one chain, as an encoder sees it: symbols, or `masked_symbol` where they are hidden.
inline constexpr std::int32_t masked_symbol = -1;
struct MaskedSegment {
  std::span<const std::int32_t> seen;
  std::span<const std::int32_t> targets;  // the true symbol if it is to be predicted, else negative
};

// Appends the losses of the targets in a sequence of segments that share a hidden chain: the posterior of each target
// given everything seen, by the forward-backward recursion (Rabiner, Proc. IEEE 1989) over each chain, with masking as
// the emission. `chain` is negative if unknown.
void append_masked_losses(const MarkovChains& chains, int chain, std::span<const MaskedSegment> segments,
                          std::vector<double>& losses);
// The loss of one target for a predictor that sees what replaces it, but no other token.
double lone_masked_loss(const std::vector<double>& frequencies, std::int32_t seen, std::int32_t target);

}  // namespace assay::data
