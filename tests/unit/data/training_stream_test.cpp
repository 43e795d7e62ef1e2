// Streams of micro-batches: the same samples for any number of ranks and workers, validation rounds, padding.
#include "workloads/data/training_stream.h"

#include "harness/core/error.h"
#include "tests/unit/data/allocations.h"
#include "tests/unit/data/fixtures.h"
#include "workloads/data/class_images.h"
#include "workloads/data/language.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace assay::data {
namespace {

// A micro-batch that owns its memory.
struct Arrays {
  Arrays(const TrainingSet& set, std::int64_t samples) {
    const auto extent = static_cast<std::size_t>(set.extent()), count = static_cast<std::size_t>(samples);
    if (set.kind() == SampleKind::image) {
      images.resize(count * extent * extent * 3);
      targets.resize(count);
    } else {
      ids.resize(count * extent);
      type_ids = targets = ids;
      lengths.resize(count);
    }
  }
  BatchArrays spans() { return {ids, type_ids, lengths, images, targets}; }
  bool operator==(const Arrays&) const = default;

  std::vector<std::int32_t> ids, type_ids, lengths, targets;
  std::vector<float> images;
};

Arrays next(TrainingStream& stream, std::int64_t samples) {
  Arrays arrays(stream.set(), samples);
  stream.next(arrays.spans());
  return arrays;
}

std::vector<std::shared_ptr<const TrainingSet>> some_sets() {
  LanguageSpec causal, masked, large;
  causal.seq = large.seq = 24;
  masked.masked = true;
  masked.seq = 24;
  masked.shortest = 10;
  large.vocabulary = 50257;
  ClassImagesSpec images;
  images.size = 12;
  causal.validation = masked.validation = large.validation = images.validation = 21;
  return {make_language(causal), make_language(masked), make_language(large), make_class_images(images)};
}

TEST(TrainingStream, RanksSeeWhatOneAccumulatingRankSees) {
  for (const auto& set : some_sets())
    for (const Split split : {Split::train, Split::validation}) {
      StreamOptions one;
      one.split = split;
      one.seed = 5;
      one.micro_batch = 3;
      TrainingStream whole(set, one);
      std::vector<Arrays> batches;
      for (int m = 0; m < 12; ++m) batches.push_back(next(whole, 3));
      if (split == Split::validation) {
        EXPECT_EQ(whole.epoch(), 7);
        EXPECT_EQ(batches[0], batches[7]);
      }
      for (const int workers : {1, 3})
        for (int rank = 0; rank < 2; ++rank) {
          StreamOptions options = one;
          options.rank = rank;
          options.world = 2;
          options.workers = workers;
          TrainingStream stream(set, options);
          // A validation round of two ranks has one batch more, which is padding.
          const int rounds = split == Split::train ? 6 : 3;
          for (int m = 0; m < rounds; ++m)
            EXPECT_EQ(next(stream, 3), batches[static_cast<std::size_t>(m * 2 + rank)]) << set->name();
        }
    }
}

TEST(TrainingStream, ResumesWhereItStopped) {
  for (const auto& set : some_sets()) {
    StreamOptions options;
    options.micro_batch = 4;
    TrainingStream stream(set, options);
    for (int m = 0; m < 3; ++m) next(stream, 4);
    options.first = stream.position();
    EXPECT_EQ(options.first, 3);
    TrainingStream resumed(set, options);
    EXPECT_EQ(next(stream, 4), next(resumed, 4));
    EXPECT_EQ(resumed.position(), 4);
  }
}

TEST(TrainingStream, SeedsAffectTrainingButNotValidation) {
  for (const auto& set : some_sets()) {
    StreamOptions a, b;
    a.micro_batch = b.micro_batch = 2;
    a.seed = 1;
    b.seed = 2;
    TrainingStream train_a(set, a), train_b(set, b);
    EXPECT_NE(next(train_a, 2), next(train_b, 2));
    a.split = b.split = Split::validation;
    TrainingStream validation_a(set, a), validation_b(set, b);
    EXPECT_EQ(next(validation_a, 2), next(validation_b, 2));
  }
}

TEST(TrainingStream, ValidationRoundsArePadded) {
  for (const auto& set : some_sets()) {
    std::int64_t samples = 0, valid = 0;
    for (int rank = 0; rank < 2; ++rank) {
      StreamOptions options;
      options.split = Split::validation;
      options.micro_batch = 4;
      options.rank = rank;
      options.world = 2;
      TrainingStream stream(set, options);
      ASSERT_EQ(stream.epoch(), 3);  // 21 samples, 8 per round
      for (int m = 0; m < 3; ++m) {
        Arrays arrays(*set, 4);
        const FilledBatch filled = stream.next(arrays.spans());
        EXPECT_EQ(filled.first, (m * 2 + rank) * 4);
        EXPECT_EQ(filled.samples, std::clamp<std::int64_t>(21 - filled.first, 0, 4));
        EXPECT_EQ(filled.valid, std::count_if(arrays.targets.begin(), arrays.targets.end(),
                                              [](std::int32_t t) { return t != ignored_target; }));
        samples += filled.samples;
        valid += filled.valid;
      }
    }
    EXPECT_EQ(samples, 21);
    EXPECT_TRUE(set->kind() != SampleKind::causal || valid == 21 * 24);
    EXPECT_TRUE(set->kind() != SampleKind::image || valid == 21);
    const auto* language = dynamic_cast<const LanguageSet*>(set.get());
    EXPECT_TRUE(!language || !language->floor() || valid == std::ssize(language->floor()->losses));
  }
}

TEST(TrainingStream, TargetsAreTheNextIds) {
  const auto set = some_sets().front();
  StreamOptions options;
  options.micro_batch = 2;
  TrainingStream stream(set, options);
  const Arrays arrays = next(stream, 2);
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t t = 0; t + 1 < 24; ++t) EXPECT_EQ(arrays.targets[row * 24 + t], arrays.ids[row * 24 + t + 1]);
  EXPECT_EQ(arrays.lengths, std::vector<std::int32_t>(2, 24));
  EXPECT_EQ(arrays.type_ids, std::vector<std::int32_t>(48, 0));
}

TEST(TrainingStream, RequiresArraysThatMatchTheSet) {
  const auto set = some_sets().front();
  TrainingStream stream(set, {});
  Arrays arrays(*set, 2);
  EXPECT_THROW(stream.next(arrays.spans()), Error);
  std::vector<std::int32_t> ids(24);
  EXPECT_EQ(stream.next({.ids = ids}).valid, 24);  // empty arrays are skipped
}

TEST(TrainingStream, ASteadyStreamAllocatesNothing) {
  for (const auto& set : some_sets()) {
    StreamOptions options;
    options.micro_batch = 4;
    TrainingStream stream(set, options);
    Arrays arrays(*set, 4);
    for (int m = 0; m < 5; ++m) stream.next(arrays.spans());
    const std::uint64_t before = test::allocations();
    for (int m = 0; m < 20; ++m) stream.next(arrays.spans());
    EXPECT_EQ(test::allocations(), before) << set->name();
  }
}

}  // namespace
}  // namespace assay::data
