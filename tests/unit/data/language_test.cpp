// The generated language: published hashes, exact predictors against enumeration, detection of losses below the floor.
#include "workloads/data/language.h"

#include "harness/core/error.h"
#include "tests/support/refusal.h"
#include "workloads/data/language_floor.h"
#include "workloads/data/markov_chains.h"
#include "workloads/data/masked_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace assay::data {
namespace {

using testing::HasSubstr;

// All sequences of `length` symbols from v.
std::vector<std::vector<std::int32_t>> all_sequences(std::int64_t v, std::size_t length) {
  std::vector<std::vector<std::int32_t>> result{{}};
  for (std::size_t t = 0; t < length; ++t) {
    std::vector<std::vector<std::int32_t>> longer;
    for (const auto& s : result)
      for (std::int32_t x = 0; x < v; ++x) {
        longer.push_back(s);
        longer.back().push_back(x);
      }
    result = std::move(longer);
  }
  return result;
}

double probability(const MarkovChains& chains, int chain, const std::vector<std::int32_t>& s) {
  double p = 1.0 / static_cast<double>(chains.symbols());
  for (std::size_t t = 1; t < s.size(); ++t) p *= chains.probability(chain, s[t - 1], s[t]);
  return p;
}

TEST(MarkovChains, RowsAreDistributionsOfTheGivenConcentration) {
  const MarkovChains chains(32, 4, 0);
  double squares = 0;
  for (int k = 0; k < 4; ++k)
    for (int x = 0; x < 32; ++x) {
      double sum = 0;
      for (int y = 0; y < 32; ++y) {
        const double p = chains.probability(k, x, y);
        EXPECT_EQ(p * 4096, std::floor(p * 4096));
        sum += p;
        squares += p * p / 128;
      }
      EXPECT_EQ(sum, 1);
    }
  // For a Dirichlet law, E sum p^2 = (alpha + 1) / (alpha V + 1) = 1.1 / 4.2.
  EXPECT_NEAR(squares, 1.1 / 4.2, 0.05);
}

TEST(MarkovChains, WalksFollowTheTable) {
  const MarkovChains chains(5, 2, 3);
  std::vector<std::int32_t> walk(200001);
  for (int k = 0; k < 2; ++k) {
    chains.walk(k, Rng(1, "walk"), 0, walk);
    std::map<std::pair<int, int>, double> pairs;
    std::map<int, double> from;
    for (std::size_t t = 1; t < walk.size(); ++t) {
      ++pairs[{walk[t - 1], walk[t]}];
      ++from[walk[t - 1]];
    }
    for (const auto& [pair, count] : pairs) {
      const double p = chains.probability(k, pair.first, pair.second), n = from[pair.first];
      ASSERT_GT(p, 0);
      EXPECT_NEAR(count / n, p, 5 * std::sqrt(p * (1 - p) / n) + 1e-12);
    }
  }
}

TEST(MarkovChains, LargeVocabulariesNeedNoTable) {
  const MarkovChains chains(400, 4, 0);
  EXPECT_FALSE(chains.has_table());
  std::vector<std::int32_t> walk(400001);
  chains.walk(1, Rng(1, "walk"), 0, walk);
  std::map<int, std::set<int>> successors;
  for (std::size_t t = 1; t < walk.size(); ++t) {
    ASSERT_TRUE(walk[t] >= 0 && walk[t] < 400);
    successors[walk[t - 1]].insert(walk[t]);
  }
  // Rows are sparse: of 64 balls, ball n has a new symbol with probability 3.2 / (3.2 + n).
  double expected = 0;
  for (int n = 0; n < 64; ++n) expected += 3.2 / (3.2 + n);
  double mean = 0;
  for (const auto& [symbol, after] : successors)
    mean += static_cast<double>(after.size()) / static_cast<double>(successors.size());
  EXPECT_GT(successors.size(), 200u);
  EXPECT_NEAR(mean, expected, 1);
}

TEST(CausalFloor, MatchesEnumeration) {
  const MarkovChains chains(3, 2, 11);
  for (const auto& s : all_sequences(3, 6)) {
    if (probability(chains, 0, s) + probability(chains, 1, s) == 0) continue;
    std::vector<double> losses;
    append_causal_losses(chains, s, losses);
    ASSERT_EQ(losses.size(), 5u);
    for (std::size_t t = 1; t < s.size(); ++t) {
      const std::vector<std::int32_t> head(s.begin(), s.begin() + static_cast<std::ptrdiff_t>(t));
      const std::vector<std::int32_t> with(s.begin(), s.begin() + static_cast<std::ptrdiff_t>(t) + 1);
      const double joint = probability(chains, 0, with) + probability(chains, 1, with);
      const double before = probability(chains, 0, head) + probability(chains, 1, head);
      EXPECT_NEAR(losses[t - 1], -std::log(joint / before), 1e-12);
    }
  }
}

TEST(CausalFloor, OrdersTheExpectedLosses) {
  const MarkovChains chains(3, 2, 11);
  constexpr std::size_t length = 6;
  double total = 0, bayes = 0, entropy = 0, bigram = 0;
  std::map<std::pair<int, int>, double> pairs;
  std::map<int, double> from;
  const auto table = best_bigram(chains, length - 1);
  for (const auto& s : all_sequences(3, length))
    for (int k = 0; k < 2; ++k) {
      const double p = probability(chains, k, s) / 2;
      if (p == 0) continue;
      total += p;
      std::vector<double> losses;
      append_causal_losses(chains, s, losses);
      for (const double loss : losses) bayes += p * loss;
      entropy += p * causal_entropy(chains, k, s);
      for (std::size_t t = 1; t < length; ++t) {
        bigram -= p * std::log(table[static_cast<std::size_t>(s[t - 1] * 3 + s[t])]);
        pairs[{s[t - 1], s[t]}] += p;
        from[s[t - 1]] += p;
      }
    }
  EXPECT_NEAR(total, 1, 1e-12);
  EXPECT_GT(bigram, bayes + 0.01);
  EXPECT_GT(bayes, entropy + 0.01);
  // The best table has the exact pair frequencies.
  for (const auto& [pair, p] : pairs)
    EXPECT_NEAR(table[static_cast<std::size_t>(pair.first * 3 + pair.second)], p / from[pair.first], 1e-12);
}

// P(seen | symbol) by the definition of masking, for a token that was picked or not. -1 is [MASK].
double masking(int seen, int symbol, bool picked, double symbols) {
  constexpr double hidden = mask_fraction / 65536.0, random = random_fraction / 65536.0;
  if (!picked) return seen == symbol;
  if (seen == masked_symbol) return hidden;
  return random / symbols + (seen == symbol ? 1 - hidden - random : 0);
}

TEST(MaskedFloor, MatchesEnumeration) {
  const MarkovChains chains(3, 2, 5);
  const double pick = picked_fraction / 65536.0;
  const std::vector<std::int32_t> first{0, masked_symbol, 2}, second{1, masked_symbol};
  const std::vector<std::int32_t> first_targets{-104, 1, 2}, second_targets{-104, 0};
  const MaskedSegment segments[] = {{first, first_targets}, {second, second_targets}};
  for (const int known : {-1, 0, 1}) {
    std::vector<double> losses;
    append_masked_losses(chains, known, segments, losses);
    ASSERT_EQ(losses.size(), 3u);
    std::size_t next = 0;
    for (std::size_t s = 0; s < 2; ++s)
      for (std::size_t t = 0; t < segments[s].seen.size(); ++t) {
        const int target = segments[s].targets[t];
        if (target < 0) continue;
        // Sum over everything hidden: the chain, the true symbols of both segments, the places that were picked.
        double joint[3] = {};
        for (int k = 0; k < 2; ++k) {
          if (known >= 0 && k != known) continue;
          for (const auto& a : all_sequences(3, first.size()))
            for (const auto& b : all_sequences(3, second.size())) {
              double p = probability(chains, k, a) * probability(chains, k, b);
              for (std::size_t u = 0; u < a.size() + b.size(); ++u) {
                const std::size_t in = u < a.size() ? 0 : 1, at = in ? u - a.size() : u;
                const int seen = segments[in].seen[at], symbol = in ? b[at] : a[at];
                p *= in == s && at == t
                         ? masking(seen, symbol, true, 3)
                         : pick * masking(seen, symbol, true, 3) + (1 - pick) * masking(seen, symbol, false, 3);
              }
              joint[s ? b[t] : a[t]] += p;
            }
        }
        EXPECT_NEAR(losses[next++], -std::log(joint[target] / (joint[0] + joint[1] + joint[2])), 1e-10);
      }
  }
}

TEST(Language, HasThePublishedHash) {
  EXPECT_EQ(make_language({})->sha256(), published_language_sha256);
  LanguageSpec masked;
  masked.vocabulary = 36;
  masked.masked = true;
  masked.shortest = 64;
  EXPECT_EQ(make_language(masked)->sha256(), published_masked_language_sha256);
  LanguageSpec large;
  large.vocabulary = 50257;
  EXPECT_EQ(make_language(large)->sha256(), published_large_language_sha256);
  LanguageSpec other;
  other.seed = 1;
  EXPECT_NE(make_language(other)->sha256(), published_language_sha256);
}

TEST(Language, FloorOfTheValidationSet) {
  LanguageSpec spec;
  const auto set = make_language(spec);
  ASSERT_TRUE(set->floor());
  const LanguageFloor& floor = *set->floor();
  EXPECT_EQ(floor.losses.size(), 512u * 128);
  EXPECT_EQ(floor.ends.back(), 512 * 128);
  EXPECT_GT(floor.baseline, floor.bayes + 0.2);
  EXPECT_GT(floor.bayes, floor.entropy);
  // Not knowing the chain costs at most ln 4 per sequence.
  EXPECT_LE(floor.bayes, floor.entropy + std::log(4.0) / 128 + 1e-9);
  spec.vocabulary = 50257;
  EXPECT_FALSE(make_language(spec)->floor());
}

TEST(Language, FloorOfTheMaskedValidationSet) {
  LanguageSpec spec;
  spec.vocabulary = 20;
  spec.masked = true;
  spec.seq = 48;
  spec.shortest = 16;
  spec.validation = 300;
  const LanguageFloor floor = *make_language(spec)->floor();
  EXPECT_GT(floor.baseline, floor.bayes + 0.2);
  EXPECT_GT(floor.bayes, floor.entropy);
  EXPECT_EQ(floor.ends.size(), 300u);
}

TEST(Language, MaskedSequencesAreWellFormed) {
  LanguageSpec spec;
  spec.vocabulary = 36;
  spec.masked = true;
  spec.seq = 64;
  spec.shortest = 8;
  const auto set = make_language(spec);
  const auto maker = set->maker(Split::train, 7);
  std::vector<std::byte> memory(static_cast<std::size_t>(set->sample_bytes()));
  const auto* ids = reinterpret_cast<const std::int32_t*>(memory.data());
  const std::int32_t *targets = ids + 64, *types = ids + 128;
  double symbols = 0, guessed = 0, hidden = 0, kept = 0;
  std::map<int, int> lengths;
  for (int s = 0; s < 2000; ++s) {
    std::int32_t length = 0;
    std::int64_t index = 0, bytes = 0;
    maker->make(s, {memory.data(), &length, &index, &bytes});
    ASSERT_TRUE(length >= 8 && length <= 64);
    ++lengths[length];
    int separators = 0, targets_here = 0;
    ASSERT_EQ(ids[0], cls_id);
    ASSERT_EQ(ids[length - 1], sep_id);
    for (int t = 0; t < 64; ++t) {
      ASSERT_EQ(types[t], t < length ? separators : 0) << t;
      if (ids[t] == sep_id) ++separators;
      ASSERT_TRUE(t < length || ids[t] == pad_id);
      ASSERT_TRUE(ids[t] != mask_id || targets[t] != ignored_target);
      symbols += ids[t] >= mask_id;
      if (targets[t] == ignored_target) continue;
      ASSERT_TRUE(targets[t] >= special_ids && targets[t] < 36);
      ASSERT_GE(ids[t], mask_id);
      ++targets_here;
      hidden += ids[t] == mask_id;
      kept += ids[t] == targets[t];
    }
    ASSERT_EQ(separators, 2);
    ASSERT_GE(targets_here, 1);
    guessed += targets_here;
  }
  EXPECT_EQ(lengths.size(), 57u);
  EXPECT_NEAR(guessed / symbols, 0.153, 0.006);  // 0.15, and more for sequences that would have had none
  EXPECT_NEAR(hidden / guessed, 0.8, 0.02);
  EXPECT_NEAR(kept / guessed, 0.1 + 0.1 / 32, 0.015);
}

TEST(FloorTest, DistinguishesABugFromLuck) {
  const auto set = make_language({});
  const LanguageFloor& floor = *set->floor();
  std::vector<double> model = floor.losses;
  EXPECT_FALSE(test_floor(model, floor.losses).below);
  // A good model with some noise: above the floor on average, below it on many tokens.
  const Rng rng(1, "noise");
  for (std::size_t i = 0; i < model.size(); ++i) model[i] += 0.01 + 0.2 * (rng.uniform(i) - 0.5);
  const FloorTest honest = test_floor(model, floor.losses, floor.ends);
  EXPECT_FALSE(honest.below);
  EXPECT_NEAR(honest.difference, 0.01, 0.002);
  // A model that knows something about the targets.
  for (double& loss : model) loss -= 0.02;
  const FloorTest cheating = test_floor(model, floor.losses, floor.ends);
  EXPECT_TRUE(cheating.below);
  EXPECT_LT(cheating.difference, -4 * cheating.standard_error);
  // Luck within a few sequences proves nothing: the targets of a sequence are correlated.
  std::vector<double> lucky = floor.losses;
  for (std::size_t i = 0; i < 3 * 128; ++i) lucky[i] -= 1;
  EXPECT_TRUE(test_floor(lucky, floor.losses).below);
  EXPECT_FALSE(test_floor(lucky, floor.losses, floor.ends).below);
}

TEST(Language, RejectsImpossibleSpecs) {
  const auto message = [](const LanguageSpec& spec) { return assay::test::refusal([&] { make_language(spec); }); };
  LanguageSpec spec;
  spec.vocabulary = 1;
  EXPECT_THAT(message(spec), HasSubstr("vocabulary of at least 2, not 1"));
  spec.vocabulary = 5;
  spec.masked = true;
  EXPECT_THAT(message(spec), HasSubstr("at least 6 (four ids are special), not 5"));
  spec = {};
  spec.seq = 0;
  EXPECT_THAT(message(spec), HasSubstr("not 0"));
}

}  // namespace
}  // namespace assay::data
