// What training reads: sets of samples, and streams that fill one micro-batch after another in the caller's memory.
#pragma once

#include "workloads/data/loader.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace assay::data {

enum class Split { train, validation };

inline constexpr std::int32_t ignored_target = -100;

// How a sample lies in a loader's slot.
enum class SampleKind {
  causal,  // T + 1 tokens of int32: inputs, and, one further, targets
  masked,  // ids (T), targets (T), type_ids (T) of int32; the label is the length
  image,   // (S, S, 3) f32, normalised; the label is the class, or ignored_target
};

// Immutable and shared by all threads. A generated set never repeats a training sample.
class TrainingSet {
 public:
  virtual ~TrainingSet() = default;
  virtual SampleKind kind() const = 0;
  virtual std::int64_t extent() const = 0;   // T tokens a sequence, or S pixels a side
  virtual std::int64_t classes() const = 0;  // ids or labels lie in [0, classes)
  // Of an epoch: a set from files shows each once; for a generated set it is the published length. 0: no such split.
  virtual std::int64_t samples(Split split) const = 0;
  // As the protocol names it: equal names, equal samples. "markov V=32 K=4 T=128 1a2b3c4d", or "files".
  virtual std::string name() const = 0;
  // A worker's own maker; it outlives neither the set nor the worker. Its position is a place in the stream that all
  // ranks share. Training order and draws follow `seed`; validation samples lie in [0, samples) and do not.
  virtual std::unique_ptr<SampleMaker> maker(Split split, std::uint64_t seed) const = 0;
  // Samples from files that could not be used so far, "name: reason" each; another was shown in their place, or, in
  // validation, none.
  virtual std::vector<std::string> unusable() const { return {}; }
  // The fault corrupt-image: the first training image of this seed's order is cut in half for makers made from here on.
  // False where samples are no images from files. Not while makers are at work.
  virtual bool damage_first_image(std::uint64_t seed) const {
    (void)seed;
    return false;
  }

  std::int64_t sample_bytes() const;
  // Of the first `most` samples of each split, for who compares platforms.
  enum class Hashed { samples, samples_and_labels };
  std::string sha256_of(std::int64_t most, Hashed what) const;
};

// One micro-batch in the caller's host memory, of B samples. Empty spans are not filled.
struct BatchArrays {
  std::span<std::int32_t> ids{};       // (B, T)
  std::span<std::int32_t> type_ids{};  // (B, T); 0 where the set has no types
  std::span<std::int32_t> lengths{};   // (B); T where the set has no padding
  std::span<float> images{};           // (B, S, S, 3)
  std::span<std::int32_t> targets{};   // (B, T) or (B); ignored_target where there is none
};

struct StreamOptions {
  Split split = Split::train;
  std::uint64_t seed = 0;        // of the run
  std::int64_t micro_batch = 1;  // samples, B
  int rank = 0;
  int world = 1;
  std::int64_t first = 0;  // micro-batch of this rank to begin with: where a checkpoint left off
  int workers = 1;
  std::vector<int> cpus;  // worker w runs on cpus[w % size]; empty: anywhere
  int prefetch = 3;       // micro-batches in memory; at least 2
};

// What next() filled.
struct FilledBatch {
  std::int64_t samples = 0;  // that are no padding; they come first
  std::int64_t first = 0;    // place of the first in the stream that all ranks share; in validation within the set
  std::int64_t valid = 0;    // targets that count
};

// Micro-batch m of rank r is number m * world + r of the one stream: a rank that accumulates `world` of them sees what
// `world` ranks see. Validation is an endless round over the set, each round of the same number of micro-batches on
// every rank; where the set runs out, rows are padding: targets ignored, zeros elsewhere. For one thread.
class TrainingStream {
 public:
  // Throws UsageError where the set has no such split.
  TrainingStream(std::shared_ptr<const TrainingSet> set, const StreamOptions& options);
  ~TrainingStream();

  // Waits for the next micro-batch and fills the arrays, which must have the set's shape. Throws what a worker threw.
  FilledBatch next(const BatchArrays& to);
  // Micro-batches of this rank so far, options.first included: what a checkpoint keeps.
  std::int64_t position() const { return position_; }
  // Micro-batches of this rank that make one epoch, or one round of validation; rounded up.
  std::int64_t epoch() const { return epoch_; }
  const TrainingSet& set() const { return *set_; }
  // Of the micro-batches that it keeps in memory.
  std::int64_t prefetch_bytes() const { return options_.prefetch * options_.micro_batch * set_->sample_bytes(); }

 private:
  std::shared_ptr<const TrainingSet> set_;
  StreamOptions options_;
  std::int64_t position_ = 0;
  std::int64_t epoch_ = 0;
  std::unique_ptr<Loader> loader_;
};

}  // namespace assay::data
