// Training data: sets of samples, and streams that fill micro-batches in the caller's memory.
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

// The layout of a sample in a loader's slot.
enum class SampleKind {
  causal,  // T + 1 tokens of int32: inputs and, shifted by one, targets
  masked,  // ids (T), targets (T), type_ids (T) of int32; the label is the length
  image,   // (S, S, 3) f32, normalised; the label is the class, or ignored_target
};

// Immutable, so that threads can share it. A generated set never repeats a training sample.
class TrainingSet {
 public:
  virtual ~TrainingSet() = default;
  virtual SampleKind kind() const = 0;
  virtual std::int64_t extent() const = 0;   // T tokens per sequence, or S pixels of height and width
  virtual std::int64_t classes() const = 0;  // ids or labels are in [0, classes)
  // Samples in an epoch: a set of files shows each once; a generated set has a nominal number. 0: no such split.
  virtual std::int64_t samples(Split split) const = 0;
  // The set's name in the protocol; equal names mean equal samples. "markov V=32 K=4 T=128 1a2b3c4d", or "files".
  virtual std::string name() const = 0;
  // A maker for one worker, which the set must outlive. Its positions are places in the stream that all ranks share.
  // `seed` determines order and draws of training; validation samples, at [0, samples), do not depend on it.
  virtual std::unique_ptr<SampleMaker> maker(Split split, std::uint64_t seed) const = 0;
  // Samples from files that could not be used so far, as "name: reason". Training substituted others, validation did
  // not.
  virtual std::vector<std::string> unusable() const { return {}; }
  // The fault corrupt-image: makers created from now on see the first training image of this seed's order cut in half.
  // False if samples are not images from files. Must not be called while makers are in use.
  virtual bool damage_first_image(std::uint64_t seed) const {
    (void)seed;
    return false;
  }

  std::int64_t sample_bytes() const;
  // Over the first `max_samples` of each split, to compare platforms.
  enum class Hashed { samples, samples_and_labels };
  std::string sha256_of(std::int64_t max_samples, Hashed what) const;
};

// One micro-batch in the caller's host memory, of B samples. Empty spans are not filled.
struct BatchArrays {
  std::span<std::int32_t> ids{};       // (B, T)
  std::span<std::int32_t> type_ids{};  // (B, T); 0 if the set has no types
  std::span<std::int32_t> lengths{};   // (B); T if the set has no padding
  std::span<float> images{};           // (B, S, S, 3)
  std::span<std::int32_t> targets{};   // (B, T) or (B); ignored_target if there is none
};

struct StreamOptions {
  Split split = Split::train;
  std::uint64_t seed = 0;        // the run's
  std::int64_t micro_batch = 1;  // samples, B
  int rank = 0;
  int world = 1;
  std::int64_t first = 0;  // first micro-batch of this rank, for resuming from a checkpoint
  int workers = 1;
  std::vector<int> cpus;  // worker w runs on cpus[w % size]; empty: anywhere
  int prefetch = 3;       // micro-batches in memory; at least 2
};

// The batch that next() has filled.
struct FilledBatch {
  std::int64_t samples = 0;  // excluding padding; they come first
  std::int64_t first = 0;    // place of the first in the stream that all ranks share, or in the validation set
  std::int64_t valid = 0;    // valid targets
};

// Micro-batch m of rank r is number m * world + r of a common stream, so one rank that accumulates `world` of them sees
// what `world` ranks see. Validation cycles through the set, with the same number of micro-batches per round on every
// rank; after the end of the set rows are padding: targets ignored, zeros elsewhere. For use by one thread.
class TrainingStream {
 public:
  // Throws UsageError if the set has no such split.
  TrainingStream(std::shared_ptr<const TrainingSet> set, const StreamOptions& options);
  ~TrainingStream();

  // Waits for the next micro-batch and fills the arrays, which must match the set. Rethrows a worker's exception.
  FilledBatch next(const BatchArrays& to);
  // Micro-batches of this rank so far, including options.first; saved in checkpoints.
  std::int64_t position() const { return position_; }
  // Micro-batches of this rank per epoch or round of validation, rounded up.
  std::int64_t epoch() const { return epoch_; }
  const TrainingSet& set() const { return *set_; }
  // Size of the micro-batches that it keeps in memory.
  std::int64_t prefetch_bytes() const { return options_.prefetch * options_.micro_batch * set_->sample_bytes(); }

 private:
  std::shared_ptr<const TrainingSet> set_;
  StreamOptions options_;
  std::int64_t position_ = 0;
  std::int64_t epoch_ = 0;
  std::unique_ptr<Loader> loader_;
};

}  // namespace assay::data
