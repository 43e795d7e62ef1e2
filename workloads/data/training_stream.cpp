#include "workloads/data/training_stream.h"

#include "harness/core/error.h"
#include "harness/core/sha256.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace assay::data {

namespace {

// Maps the loader's positions to places of the stream that all ranks share; pads after the end of a validation set.
class Placed final : public SampleMaker {
 public:
  Placed(const TrainingSet& set, const StreamOptions& options, std::int64_t epoch)
      : maker_(set.maker(options.split, options.seed)),
        options_(options),
        epoch_(epoch),
        samples_(options.split == Split::validation ? set.samples(Split::validation) : INT64_MAX),
        bytes_(static_cast<std::size_t>(set.sample_bytes())) {}

  void make(std::int64_t position, const SampleSlot& slot) override {
    std::int64_t batch = options_.first + position / options_.micro_batch;
    if (options_.split == Split::validation) batch %= epoch_;
    const std::int64_t place =
        (batch * options_.world + options_.rank) * options_.micro_batch + position % options_.micro_batch;
    if (place < samples_) return maker_->make(place, slot);
    std::memset(slot.data, 0, bytes_);
    *slot.index = -1;
    *slot.label = ignored_target;
    *slot.bytes = 0;
  }

 private:
  std::unique_ptr<SampleMaker> maker_;
  StreamOptions options_;
  std::int64_t epoch_;
  std::int64_t samples_;
  std::size_t bytes_;
};

template <typename T>
void expect_size(std::span<T> span, std::int64_t size, const char* name) {
  ASSAY_CHECK(span.empty() || static_cast<std::int64_t>(span.size()) == size, "{}: {} elements, the batch has {}", name,
              span.size(), size);
}

template <typename T>
void copy_row(const std::int32_t* from, std::size_t count, std::size_t row, std::span<T> to) {
  if (!to.empty()) std::memcpy(to.data() + row * count, from, count * sizeof(T));
}

}  // namespace

std::int64_t TrainingSet::sample_bytes() const {
  switch (kind()) {
    case SampleKind::causal: return (extent() + 1) * 4;
    case SampleKind::masked: return extent() * 3 * 4;
    case SampleKind::image: return extent() * extent() * 3 * 4;
  }
  return 0;
}

std::string TrainingSet::sha256_of(std::int64_t max_samples, Hashed what) const {
  Sha256 hash;
  std::vector<std::byte> sample(static_cast<std::size_t>(sample_bytes()));
  for (const Split split : {Split::train, Split::validation}) {
    const auto make = maker(split, 0);
    for (std::int64_t i = 0; i < std::min(max_samples, samples(split)); ++i) {
      std::int32_t label = 0;
      std::int64_t index = 0, bytes = 0;
      make->make(i, {sample.data(), &label, &index, &bytes});
      hash.add(sample);
      if (what == Hashed::samples_and_labels) hash.add(std::as_bytes(std::span(&label, 1)));
    }
  }
  return hash.hex();
}

TrainingStream::TrainingStream(std::shared_ptr<const TrainingSet> set, const StreamOptions& options)
    : set_(std::move(set)), options_(options), position_(options.first) {
  ASSAY_CHECK(options.micro_batch >= 1 && options.world >= 1 && options.rank >= 0 && options.rank < options.world &&
              options.first >= 0);
  const std::int64_t samples = set_->samples(options.split);
  if (samples == 0) throw UsageError(set_->name() + ": too few samples to hold any out for validation");
  const std::int64_t round = options.micro_batch * options.world;
  epoch_ = (samples + round - 1) / round;
  LoaderOptions loader;
  loader.workers = options.workers;
  loader.cpus = options.cpus;
  loader.batch = options.micro_batch;
  loader.prefetch = options.prefetch;
  loader.sample_bytes = set_->sample_bytes();
  // Token samples take microseconds, so a worker makes several at a time.
  loader.grain = set_->kind() == SampleKind::image ? 1 : std::gcd(options.micro_batch, std::int64_t{8});
  loader_ = std::make_unique<Loader>(loader, [this](int) { return std::make_unique<Placed>(*set_, options_, epoch_); });
}

TrainingStream::~TrainingStream() = default;

FilledBatch TrainingStream::next(const BatchArrays& to) {
  const std::int64_t samples = options_.micro_batch;
  const std::int64_t extent = set_->extent();
  const SampleKind kind = set_->kind();
  const std::int64_t tokens = kind == SampleKind::image ? 0 : samples * extent;
  expect_size(to.ids, tokens, "ids");
  expect_size(to.type_ids, tokens, "type_ids");
  expect_size(to.lengths, kind == SampleKind::image ? 0 : samples, "lengths");
  expect_size(to.images, kind == SampleKind::image ? samples * extent * extent * 3 : 0, "images");
  expect_size(to.targets, kind == SampleKind::image ? samples : tokens, "targets");

  const Batch& batch = loader_->next();
  FilledBatch filled;
  const std::int64_t number = options_.split == Split::validation ? position_ % epoch_ : position_;
  filled.first = (number * options_.world + options_.rank) * samples;
  ++position_;
  const auto row_tokens = static_cast<std::size_t>(extent);
  const auto sample_values = static_cast<std::size_t>(set_->sample_bytes()) / 4;
  if (!to.images.empty()) std::memcpy(to.images.data(), batch.data, to.images.size_bytes());
  for (std::size_t row = 0; row < static_cast<std::size_t>(samples); ++row) {
    const bool padding = batch.indices[row] < 0;
    filled.samples += !padding;
    if (kind == SampleKind::image) {
      if (!to.targets.empty()) to.targets[row] = batch.labels[row];
      filled.valid += batch.labels[row] != ignored_target;
      continue;
    }
    const std::int32_t* sample = reinterpret_cast<const std::int32_t*>(batch.data) + row * sample_values;
    const bool masked = kind == SampleKind::masked;
    copy_row(sample, row_tokens, row, to.ids);
    const std::int32_t* targets = sample + (masked ? row_tokens : 1);
    if (padding) {
      if (!to.targets.empty()) std::fill_n(to.targets.data() + row * row_tokens, row_tokens, ignored_target);
    } else {
      copy_row(targets, row_tokens, row, to.targets);
      filled.valid += masked ? extent - std::count(targets, targets + extent, ignored_target) : extent;
    }
    if (masked)
      copy_row(sample + 2 * row_tokens, row_tokens, row, to.type_ids);
    else if (!to.type_ids.empty())
      std::fill_n(to.type_ids.data() + row * row_tokens, row_tokens, 0);
    if (!to.lengths.empty())
      to.lengths[row] = masked && !padding ? batch.labels[row] : static_cast<std::int32_t>(extent);
  }
  return filled;
}

}  // namespace assay::data
