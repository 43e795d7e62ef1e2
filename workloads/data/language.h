// A language with a known loss floor: each sequence is drawn from one of K hidden Markov chains over V symbols.
#pragma once

#include "workloads/data/training_stream.h"

#include <optional>

namespace assay::data {

struct LanguageSpec {
  std::int64_t vocabulary = 32;   // the model's; all ids are symbols, except the four special ids of `masked`
  int chains = 4;                 // K
  std::int64_t seq = 128;         // T
  bool masked = false;            // BERT: [CLS] a [SEP] b [SEP] and padding; 15 % of the symbols are targets
  std::int64_t shortest = 0;      // masked: lengths are uniform in [shortest, T]; 0: all are T
  std::int64_t validation = 512;  // sequences
  std::uint64_t seed = 0;         // seed of the chains and of the validation set
};

// Special tokens of a masked language; its symbols follow.
inline constexpr std::int32_t pad_id = 0, cls_id = 1, sep_id = 2, mask_id = 3, special_ids = 4;

// Losses of predictors on this validation set, in nats per target.
struct LanguageFloor {
  double bayes = 0;                // knows the K chains, but not which one: no model does better except by chance
  double entropy = 0;              // loss of a predictor that also knows the chain
  double baseline = 0;             // causal: the best bigram. masked: the best that sees no other token
  std::vector<double> losses;      // the Bayes predictor's, for each target in the order of the set
  std::vector<std::int64_t> ends;  // sequence s has losses [ends[s - 1], ends[s])
};

class LanguageSet : public TrainingSet {
 public:
  virtual const LanguageSpec& spec() const = 0;
  // Computed on the first call; nothing if the chains are too large for the exact predictor (V K > 1,024).
  virtual const std::optional<LanguageFloor>& floor() const = 0;
  // SHA-256 of the first sequences of both splits, as little-endian int32.
  virtual std::string sha256() const = 0;
};

// sha256() of the default language, of a masked one of 36 ids with sequences of 64 to 128 tokens, and of one of 50,257
// ids.
inline constexpr const char* published_language_sha256 =
    "7a6e994860ad85d435fb53bd25b71e75dcf7bc6ada8871624d54263e47b9c651";
inline constexpr const char* published_masked_language_sha256 =
    "073b3c34fb9467466b0bf48e5b87e5e16b49a74a177db5a58ca2202805d73880";
inline constexpr const char* published_large_language_sha256 =
    "d040a19ae81a93f8376babb530f4fb45ed41206b94e3dd2b554d14248bd419c9";

// Throws UsageError for a vocabulary below 2 (masked: 6) or a sequence that is too short or too long.
std::shared_ptr<const LanguageSet> make_language(const LanguageSpec& spec);

// Tests whether losses are below a floor by more than chance; both of the same targets in the same order, or both means
// over equal groups of targets. Losses within group g, [ends[g - 1], ends[g]), may be correlated (LanguageFloor::ends:
// the targets of one sequence); without `ends` all are independent.
struct FloorTest {
  double difference = 0;      // mean of loss - floor, in nats
  double standard_error = 0;  // the paired standard error of that difference
  bool below = false;         // below by more than 4 standard errors: a bug in the model, the loss or the data
};
FloorTest test_floor(std::span<const double> losses, std::span<const double> floor,
                     std::span<const std::int64_t> ends = {});

}  // namespace assay::data
