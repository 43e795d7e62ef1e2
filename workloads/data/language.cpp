#include "workloads/data/language.h"

#include "harness/core/error.h"
#include "workloads/data/language_floor.h"
#include "workloads/data/markov_chains.h"
#include "workloads/data/masked_tokens.h"

#include <algorithm>
#include <cmath>

namespace assay::data {

namespace {

constexpr std::int64_t shortest_masked = 8;  // room for both segments
constexpr std::int64_t longest = 1 << 18;    // each sequence has its own counter range for draws
constexpr std::int64_t hashed_sequences = 64;
constexpr std::int64_t sequences_per_epoch = 1 << 14;

// The parts of a masked sequence.
struct Layout {
  std::int64_t length = 0;  // including special tokens
  std::int64_t first = 0;   // symbols of the first segment, from place 1 on
  std::int64_t second = 0;  // symbols of the second segment
  std::int64_t second_at() const { return first + 2; }
};

// The sequences of a split, each a function of its place.
class Sequences {
 public:
  Sequences(const LanguageSpec& spec, const MarkovChains& chains, Split split, std::uint64_t seed)
      : spec_(spec),
        chains_(chains),
        draws_(seed, split == Split::train ? "language train" : "language validation"),
        masks_(seed, split == Split::train ? "language train masks" : "language validation masks") {}

  int chain(std::uint64_t place) const {
    return static_cast<int>(draws_.below(place << 20, static_cast<std::uint64_t>(chains_.chains())));
  }
  // (T + 1) tokens.
  void causal(std::uint64_t place, std::int32_t* tokens) const {
    chains_.walk(chain(place), draws_, (place << 20) + 1, {tokens, static_cast<std::size_t>(spec_.seq) + 1});
  }

  Layout layout(std::uint64_t place) const {
    Layout layout;
    layout.length = spec_.seq;
    if (spec_.shortest > 0) layout.length = spec_.shortest + below(place, 1, spec_.seq - spec_.shortest + 1);
    const std::int64_t symbols = layout.length - 3;
    layout.first = std::max<std::int64_t>(1, symbols / 4) + below(place, 2, symbols / 2);
    layout.second = symbols - layout.first;
    return layout;
  }
  // ids, targets and types, (T) each; returns the length.
  std::int64_t masked(std::uint64_t place, std::int32_t* ids, std::int32_t* targets, std::int32_t* types) const {
    const Layout layout = this->layout(place);
    const auto seq = static_cast<std::size_t>(spec_.seq);
    const auto first = static_cast<std::size_t>(layout.first), second = static_cast<std::size_t>(layout.second);
    const auto second_at = static_cast<std::size_t>(layout.second_at());
    const std::uint64_t draw = (place << 20) + 3;
    const int k = chain(place);
    chains_.walk(k, draws_, draw, {ids + 1, first});
    chains_.walk(k, draws_, draw + MarkovChains::draws_of(first), {ids + second_at, second});
    const auto length = static_cast<std::size_t>(layout.length);
    for (std::size_t t = 0; t < seq; ++t) {
      const bool special = t == 0 || t + 1 == second_at || t + 1 >= length;
      ids[t] = t == 0 ? cls_id : t >= length ? pad_id : special ? sep_id : ids[t] + special_ids;
      types[t] = t >= second_at && t < length;
    }
    const MaskedVocabulary vocabulary{special_ids, static_cast<std::int32_t>(chains_.symbols()), mask_id};
    mask_tokens(masks_, place, vocabulary, {ids, seq}, {targets, seq}, ignored_target,
                [ids](std::size_t t) { return ids[t] >= special_ids; });
    return layout.length;
  }

 private:
  std::int64_t below(std::uint64_t place, std::uint64_t draw, std::int64_t bound) const {
    return static_cast<std::int64_t>(draws_.below((place << 20) + draw, static_cast<std::uint64_t>(bound)));
  }

  const LanguageSpec& spec_;
  const MarkovChains& chains_;
  Rng draws_;
  Rng masks_;
};

class SequenceMaker final : public SampleMaker {
 public:
  SequenceMaker(const LanguageSpec& spec, const MarkovChains& chains, Split split, std::uint64_t seed)
      : spec_(spec), sequences_(spec, chains, split, seed) {}
  void make(std::int64_t position, const SampleSlot& slot) override {
    auto* tokens = reinterpret_cast<std::int32_t*>(slot.data);
    const auto place = static_cast<std::uint64_t>(position);
    std::int64_t length = spec_.seq;
    if (spec_.masked)
      length = sequences_.masked(place, tokens, tokens + spec_.seq, tokens + 2 * spec_.seq);
    else
      sequences_.causal(place, tokens);
    *slot.index = position;
    *slot.label = static_cast<std::int32_t>(length);
    *slot.bytes = 0;
  }

 private:
  const LanguageSpec& spec_;
  Sequences sequences_;
};

class Language final : public LanguageSet {
 public:
  explicit Language(const LanguageSpec& spec)
      : spec_(spec), chains_(spec.vocabulary - (spec.masked ? special_ids : 0), spec.chains, spec.seed) {}

  SampleKind kind() const override { return spec_.masked ? SampleKind::masked : SampleKind::causal; }
  std::int64_t extent() const override { return spec_.seq; }
  std::int64_t classes() const override { return spec_.vocabulary; }
  std::int64_t samples(Split split) const override {
    return split == Split::train ? sequences_per_epoch : spec_.validation;
  }
  std::string name() const override {
    return fmt::format("{}markov V={} K={} T={} {}", spec_.masked ? "masked " : "", chains_.symbols(), spec_.chains,
                       spec_.seq, sha256().substr(0, 16));
  }
  std::unique_ptr<SampleMaker> maker(Split split, std::uint64_t seed) const override {
    return std::make_unique<SequenceMaker>(spec_, chains_, split, split == Split::train ? seed : spec_.seed);
  }
  const LanguageSpec& spec() const override { return spec_; }

  const std::optional<LanguageFloor>& floor() const override {
    std::call_once(floor_once_, [this] {
      if (chains_.has_table()) floor_ = spec_.masked ? masked_floor() : causal_floor();
    });
    return floor_;
  }

  std::string sha256() const override {
    std::call_once(hash_once_, [this] { hash_ = sha256_of(hashed_sequences, Hashed::samples); });
    return hash_;
  }

 private:
  LanguageFloor causal_floor() const {
    LanguageFloor floor;
    const Sequences sequences(spec_, chains_, Split::validation, spec_.seed);
    const std::vector<double> bigram = best_bigram(chains_, spec_.seq);
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(spec_.seq) + 1);
    for (std::int64_t s = 0; s < spec_.validation; ++s) {
      sequences.causal(static_cast<std::uint64_t>(s), tokens.data());
      append_causal_losses(chains_, tokens, floor.losses);
      floor.ends.push_back(static_cast<std::int64_t>(floor.losses.size()));
      floor.entropy += causal_entropy(chains_, sequences.chain(static_cast<std::uint64_t>(s)), tokens);
      for (std::size_t t = 1; t < tokens.size(); ++t)
        floor.baseline -= std::log(bigram[static_cast<std::size_t>(tokens[t - 1] * chains_.symbols() + tokens[t])]);
    }
    return averaged(std::move(floor));
  }

  LanguageFloor masked_floor() const {
    LanguageFloor floor;
    const Sequences sequences(spec_, chains_, Split::validation, spec_.seed);
    const std::vector<double> frequencies = symbol_frequencies(chains_, spec_.seq / 2);
    const auto seq = static_cast<std::size_t>(spec_.seq);
    std::vector<std::int32_t> ids(seq), targets(seq), types(seq);
    std::vector<double> with_chain;
    for (std::int64_t s = 0; s < spec_.validation; ++s) {
      const auto place = static_cast<std::uint64_t>(s);
      sequences.masked(place, ids.data(), targets.data(), types.data());
      // From the model's ids to the chains' symbols: [MASK] becomes masked_symbol; targets that do not count, negative.
      for (std::size_t t = 0; t < seq; ++t) {
        ids[t] -= special_ids;
        targets[t] -= special_ids;
        if (targets[t] >= 0) floor.baseline += lone_masked_loss(frequencies, ids[t], targets[t]);
      }
      const Layout layout = sequences.layout(place);
      const auto segment = [&](std::int64_t at, std::int64_t count) {
        const auto from = static_cast<std::size_t>(at), length = static_cast<std::size_t>(count);
        return MaskedSegment{{ids.data() + from, length}, {targets.data() + from, length}};
      };
      const MaskedSegment segments[] = {segment(1, layout.first), segment(layout.second_at(), layout.second)};
      append_masked_losses(chains_, -1, segments, floor.losses);
      append_masked_losses(chains_, sequences.chain(place), segments, with_chain);
      floor.ends.push_back(static_cast<std::int64_t>(floor.losses.size()));
    }
    for (const double loss : with_chain) floor.entropy += loss;
    return averaged(std::move(floor));
  }

  // From sums to means.
  static LanguageFloor averaged(LanguageFloor floor) {
    const auto targets = static_cast<double>(floor.losses.size());
    for (const double loss : floor.losses) floor.bayes += loss / targets;
    floor.entropy /= targets;
    floor.baseline /= targets;
    return floor;
  }

  LanguageSpec spec_;
  MarkovChains chains_;
  mutable std::once_flag floor_once_, hash_once_;
  mutable std::optional<LanguageFloor> floor_;
  mutable std::string hash_;
};

}  // namespace

std::shared_ptr<const LanguageSet> make_language(const LanguageSpec& spec) {
  const std::int64_t min_vocabulary = spec.masked ? special_ids + 2 : 2;
  const std::int64_t min_seq = spec.masked ? shortest_masked : 1;
  if (spec.vocabulary < min_vocabulary)
    throw UsageError(fmt::format("a generated language needs a vocabulary of at least {}{}, not {}", min_vocabulary,
                                 spec.masked ? " (four ids are special)" : "", spec.vocabulary));
  if (spec.seq < min_seq || spec.seq > longest)
    throw UsageError(
        fmt::format("a generated language has sequences of {} to {} tokens, not {}", min_seq, longest, spec.seq));
  ASSAY_CHECK(spec.chains >= 1 && spec.validation >= 1 && spec.shortest <= spec.seq &&
              (spec.shortest == 0 || spec.shortest >= min_seq));
  return std::make_shared<Language>(spec);
}

FloorTest test_floor(std::span<const double> losses, std::span<const double> floor,
                     std::span<const std::int64_t> ends) {
  ASSAY_CHECK(losses.size() == floor.size() && !losses.empty() &&
              (ends.empty() || ends.back() == static_cast<std::int64_t>(losses.size())));
  const auto count = static_cast<double>(losses.size());
  FloorTest test;
  for (std::size_t i = 0; i < losses.size(); ++i) test.difference += (losses[i] - floor[i]) / count;
  // A ratio of sums over groups: use the residual of each group's sum, as in survey sampling (Cochran 1977, section
  // 9A).
  double squares = 0;
  const std::size_t groups = ends.empty() ? losses.size() : ends.size();
  for (std::size_t g = 0, i = 0; g < groups; ++g) {
    double residual = 0;
    for (const std::size_t end = ends.empty() ? g + 1 : static_cast<std::size_t>(ends[g]); i < end; ++i)
      residual += losses[i] - floor[i] - test.difference;
    squares += residual * residual;
  }
  if (groups < 2) return test;
  const auto n = static_cast<double>(groups);
  test.standard_error = std::sqrt(squares * n / (n - 1)) / count;
  // A millionth of a nat never counts: it may be rounding of f32 losses.
  test.below = test.difference < -std::max(4 * test.standard_error, 1e-6);
  return test;
}

}  // namespace assay::data
