// A language whose loss floor is known: each sequence is drawn from one of K hidden Markov chains over V symbols.
#pragma once

#include "workloads/data/training_stream.h"

#include <optional>

namespace assay::data {

struct LanguageSpec {
  std::int64_t vocabulary = 32;   // of the model; all ids are symbols, but for the four special ones of `masked`
  int chains = 4;                 // K
  std::int64_t seq = 128;         // T
  bool masked = false;            // BERT: [CLS] a [SEP] b [SEP] and padding, 15 % of the symbols to be guessed
  std::int64_t shortest = 0;      // masked: lengths are uniform in [shortest, T]; 0: all are T
  std::int64_t validation = 512;  // sequences
  std::uint64_t seed = 0;         // of the chains and of the validation set
};

// Ids of a masked language's special tokens; its symbols follow.
inline constexpr std::int32_t pad_id = 0, cls_id = 1, sep_id = 2, mask_id = 3, special_ids = 4;

// Loss of predictors on the very validation set, in nats a target.
struct LanguageFloor {
  double bayes = 0;                // knows the K chains, not which: no model can do better but by luck
  double entropy = 0;              // knows which chain, too
  double baseline = 0;             // causal: the best bigram. masked: the best that looks at no other token
  std::vector<double> losses;      // of the Bayes predictor: each target's, in the order of the set
  std::vector<std::int64_t> ends;  // sequence s has losses [ends[s - 1], ends[s])
};

class LanguageSet : public TrainingSet {
 public:
  virtual const LanguageSpec& spec() const = 0;
  // Computed at the first call; nothing where the chains are too large for the exact predictor (V K > 1,024).
  virtual const std::optional<LanguageFloor>& floor() const = 0;
  // SHA-256 of the first sequences of both splits, as little-endian int32.
  virtual std::string sha256() const = 0;
};

// Throws UsageError for a vocabulary below 2 (masked: 6) or a sequence too short.
std::shared_ptr<const LanguageSet> make_language(const LanguageSpec& spec);

// Whether losses lie below a floor by more than chance allows; both of the same targets, or both means over equal
// groups of targets, in the same order.
struct FloorTest {
  double difference = 0;      // mean of loss - floor, in nats
  double standard_error = 0;  // of it, paired
  bool below = false;         // by more than 4 standard errors: a bug in the model, the loss or the data
};
FloorTest test_floor(std::span<const double> losses, std::span<const double> floor);

}  // namespace assay::data
