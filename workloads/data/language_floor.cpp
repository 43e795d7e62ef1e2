#include "workloads/data/language_floor.h"

#include "workloads/data/masked_tokens.h"

#include <algorithm>
#include <cmath>

namespace assay::data {

namespace {

constexpr double whole = 65536;
constexpr double picked = picked_fraction / whole;
constexpr double hidden = mask_fraction / whole;
constexpr double random = random_fraction / whole;
constexpr double kept = 1 - hidden - random;

// P(seen | symbol) of a token that was picked, and of one that may have been.
double picked_emission(std::int32_t seen, std::int64_t symbol, double symbols) {
  if (seen == masked_symbol) return hidden;
  return random / symbols + (seen == symbol ? kept : 0);
}
double emission(std::int32_t seen, std::int64_t symbol, double symbols) {
  if (seen == masked_symbol) return picked * hidden;
  return picked * random / symbols + (seen == symbol ? picked * kept + (1 - picked) : 0);
}

void normalise(std::vector<double>& values, std::size_t begin, std::size_t count, double& log_scale) {
  double sum = 0;
  for (std::size_t i = begin; i < begin + count; ++i) sum += values[i];
  for (std::size_t i = begin; i < begin + count; ++i) values[i] /= sum;
  log_scale += std::log(sum);
}

// One segment under one chain: before(t, x) is proportional to P(seen before t, x at t), after(t, x) to
// P(seen after t | x at t).
struct Recursion {
  std::vector<double> before, after;  // (T, V)
  double log_likelihood = 0;          // of everything seen
};

Recursion recurse(const MarkovChains& chains, int chain, std::span<const std::int32_t> seen) {
  const auto v = static_cast<std::size_t>(chains.symbols());
  const auto symbols = static_cast<double>(v);
  Recursion result;
  result.before.assign(seen.size() * v, 0);
  result.after.assign(seen.size() * v, 1);
  std::fill_n(result.before.begin(), v, 1 / symbols);
  std::vector<double> joint(v);
  for (std::size_t t = 0; t < seen.size(); ++t) {
    double sum = 0;
    for (std::size_t x = 0; x < v; ++x)
      sum += joint[x] = result.before[t * v + x] * emission(seen[t], static_cast<std::int64_t>(x), symbols);
    result.log_likelihood += std::log(sum);
    if (t + 1 == seen.size()) break;
    double* next = result.before.data() + (t + 1) * v;
    for (std::size_t x = 0; x < v; ++x) {
      if (joint[x] == 0) continue;
      const double* row = chains.row(chain, static_cast<std::int64_t>(x));
      for (std::size_t y = 0; y < v; ++y) next[y] += joint[x] / sum * row[y];
    }
  }
  for (std::size_t t = seen.size() - 1; t-- > 0;) {
    const double* later = result.after.data() + (t + 1) * v;
    for (std::size_t y = 0; y < v; ++y)
      joint[y] = later[y] * emission(seen[t + 1], static_cast<std::int64_t>(y), symbols);
    for (std::size_t x = 0; x < v; ++x) {
      const double* row = chains.row(chain, static_cast<std::int64_t>(x));
      double sum = 0;
      for (std::size_t y = 0; y < v; ++y) sum += row[y] * joint[y];
      result.after[t * v + x] = sum;
    }
    double unused = 0;
    normalise(result.after, t * v, v, unused);
  }
  return result;
}

// Calls use(chain, frequencies) with P(x at t) under each chain for t in [0, length).
template <typename Use>
void propagate(const MarkovChains& chains, std::int64_t length, const Use& use) {
  const auto v = static_cast<std::size_t>(chains.symbols());
  for (int chain = 0; chain < chains.chains(); ++chain) {
    std::vector<double> frequencies(v, 1 / static_cast<double>(v)), next(v);
    for (std::int64_t t = 0; t < length; ++t) {
      use(chain, frequencies);
      std::ranges::fill(next, 0);
      for (std::size_t x = 0; x < v; ++x) {
        const double* row = chains.row(chain, static_cast<std::int64_t>(x));
        for (std::size_t y = 0; y < v; ++y) next[y] += frequencies[x] * row[y];
      }
      frequencies.swap(next);
    }
  }
}

}  // namespace

void append_causal_losses(const MarkovChains& chains, std::span<const std::int32_t> tokens,
                          std::vector<double>& losses) {
  const auto count = static_cast<std::size_t>(chains.chains());
  std::vector<double> posterior(count, 1 / static_cast<double>(count)), joint(count);
  for (std::size_t t = 1; t < tokens.size(); ++t) {
    double sum = 0;
    for (std::size_t k = 0; k < count; ++k)
      sum += joint[k] = posterior[k] * chains.probability(static_cast<int>(k), tokens[t - 1], tokens[t]);
    losses.push_back(-std::log(sum));
    for (std::size_t k = 0; k < count; ++k) posterior[k] = joint[k] / sum;
  }
}

double causal_entropy(const MarkovChains& chains, int chain, std::span<const std::int32_t> tokens) {
  double sum = 0;
  for (std::size_t t = 1; t < tokens.size(); ++t) sum -= std::log(chains.probability(chain, tokens[t - 1], tokens[t]));
  return sum;
}

std::vector<double> best_bigram(const MarkovChains& chains, std::int64_t length) {
  const auto v = static_cast<std::size_t>(chains.symbols());
  std::vector<double> weights(static_cast<std::size_t>(chains.chains()) * v);  // how often chain k is at symbol x
  propagate(chains, length, [&](int chain, const std::vector<double>& frequencies) {
    for (std::size_t x = 0; x < v; ++x) weights[static_cast<std::size_t>(chain) * v + x] += frequencies[x];
  });
  std::vector<double> table(v * v);
  for (std::size_t x = 0; x < v; ++x) {
    double total = 0;
    for (int k = 0; k < chains.chains(); ++k) {
      const double weight = weights[static_cast<std::size_t>(k) * v + x];
      const double* row = chains.row(k, static_cast<std::int64_t>(x));
      for (std::size_t y = 0; y < v; ++y) table[x * v + y] += weight * row[y];
      total += weight;
    }
    for (std::size_t y = 0; y < v && total > 0; ++y) table[x * v + y] /= total;
  }
  return table;
}

std::vector<double> symbol_frequencies(const MarkovChains& chains, std::int64_t length) {
  std::vector<double> sums(static_cast<std::size_t>(chains.symbols()));
  propagate(chains, length, [&](int, const std::vector<double>& frequencies) {
    for (std::size_t x = 0; x < sums.size(); ++x)
      sums[x] += frequencies[x] / static_cast<double>(length * chains.chains());
  });
  return sums;
}

void append_masked_losses(const MarkovChains& chains, int chain, std::span<const MaskedSegment> segments,
                          std::vector<double>& losses) {
  const auto v = static_cast<std::size_t>(chains.symbols());
  const auto symbols = static_cast<double>(v);
  const int first = chain < 0 ? 0 : chain;
  const int last = chain < 0 ? chains.chains() : chain + 1;
  std::vector<std::vector<Recursion>> recursions;  // by chain, then segment
  std::vector<double> log_likelihood;
  for (int k = first; k < last; ++k) {
    std::vector<Recursion>& of_chain = recursions.emplace_back();
    log_likelihood.push_back(0);
    for (const MaskedSegment& segment : segments)
      log_likelihood.back() += of_chain.emplace_back(recurse(chains, k, segment.seen)).log_likelihood;
  }
  const double largest = *std::ranges::max_element(log_likelihood);
  std::vector<double> posterior(v);
  for (std::size_t s = 0; s < segments.size(); ++s) {
    for (std::size_t t = 0; t < segments[s].seen.size(); ++t) {
      const std::int32_t target = segments[s].targets[t];
      if (target < 0) continue;
      const std::int32_t seen = segments[s].seen[t];
      std::ranges::fill(posterior, 0);
      for (std::size_t k = 0; k < recursions.size(); ++k) {
        const Recursion& r = recursions[k][s];
        const double *before = r.before.data() + t * v, *after = r.after.data() + t * v;
        // The chain's likelihood treats this place like any other, but here it is known to be picked.
        double unconditional = 0;
        for (std::size_t x = 0; x < v; ++x)
          unconditional += before[x] * after[x] * emission(seen, static_cast<std::int64_t>(x), symbols);
        const double weight = std::exp(log_likelihood[k] - largest) / unconditional;
        for (std::size_t x = 0; x < v; ++x)
          posterior[x] += weight * before[x] * after[x] * picked_emission(seen, static_cast<std::int64_t>(x), symbols);
      }
      double sum = 0;
      for (const double p : posterior) sum += p;
      losses.push_back(-std::log(posterior[static_cast<std::size_t>(target)] / sum));
    }
  }
}

double lone_masked_loss(const std::vector<double>& frequencies, std::int32_t seen, std::int32_t target) {
  const auto symbols = static_cast<double>(frequencies.size());
  double sum = 0;
  for (std::size_t x = 0; x < frequencies.size(); ++x)
    sum += frequencies[x] * picked_emission(seen, static_cast<std::int64_t>(x), symbols);
  const double of_target = frequencies[static_cast<std::size_t>(target)] * picked_emission(seen, target, symbols);
  return -std::log(of_target / sum);
}

}  // namespace assay::data
