// The loader: order, errors, shutdown, and no allocations in a steady state.
#include "tests/unit/data/fixtures.h"

#include "harness/core/error.h"
#include "tests/unit/data/allocations.h"
#include "workloads/data/image_stream.h"
#include "workloads/data/token_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

namespace assay::data {
namespace {

using test::Folder;

class Loading : public testing::Test {
 protected:
  void SetUp() override {
    for (std::uint64_t i = 0; i < 10; ++i)
      folder_.write("c" + std::to_string(i % 3) + "/" + std::to_string(i) + ".jpg", test::picture(i));
  }
  ImageStream stream_of(const ImageSet& set) {
    ImageStream stream;
    stream.set = &set;
    stream.order = {42, set.size(), 0, 1};
    stream.size = 64;
    stream.bad = &bad_;
    stream.kernels = &best_resize_kernels();
    return stream;
  }
  static LoaderOptions options(int workers) {
    LoaderOptions options;
    options.workers = workers;
    options.batch = 8;
    options.sample_bytes = sample_bytes(64);
    return options;
  }

  Folder folder_;
  BadImages bad_;
};

TEST_F(Loading, SamplesDoNotDependOnTheWorkers) {
  // One image is damaged, so that the comparison includes substitutes.
  std::filesystem::resize_file(folder_.path("c1/4.jpg"), 3000);
  const ImageSet set = ImageSet::open(folder_.path());
  const ImageStream stream = stream_of(set);
  for (const int workers : {2, 5}) {
    Loader single(options(1), [&](int) { return make_image_pipeline(stream); });
    Loader many(options(workers), [&](int) { return make_image_pipeline(stream); });
    for (int b = 0; b < 6; ++b) {
      const Batch& expected = single.next();
      const Batch& got = many.next();
      EXPECT_EQ(got.number, b);
      EXPECT_TRUE(std::equal(got.indices.begin(), got.indices.end(), expected.indices.begin()));
      EXPECT_TRUE(std::equal(got.labels.begin(), got.labels.end(), expected.labels.begin()));
      EXPECT_EQ(got.bytes, expected.bytes);
      EXPECT_EQ(std::memcmp(got.data, expected.data, static_cast<std::size_t>(8 * sample_bytes(64))), 0);
    }
  }
  ASSERT_EQ(bad_.all().size(), 1u);
  EXPECT_EQ(set.name(static_cast<std::size_t>(bad_.all().begin()->first)), "c1/4.jpg");
}

TEST_F(Loading, AWorkersErrorReachesTheConsumer) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path()))
    if (entry.is_regular_file()) std::filesystem::resize_file(entry.path(), 100);
  const ImageSet set = ImageSet::open(folder_.path());
  const ImageStream stream = stream_of(set);
  Loader loader(options(2), [&](int) { return make_image_pipeline(stream); });
  EXPECT_THROW(loader.next(), Error);
  EXPECT_THROW(loader.next(), Error);
}

TEST_F(Loading, PrefetchIsBoundedAndShutdownIsClean) {
  struct Counting final : SampleMaker {
    explicit Counting(std::atomic<int>& counter) : made(counter) {}
    void make(std::int64_t, const SampleSlot& slot) override {
      *slot.index = *slot.label = 0;
      *slot.bytes = 0;
      ++made;
    }
    std::atomic<int>& made;
  };
  std::atomic<int> made{0};
  LoaderOptions few = options(3);
  few.prefetch = 2;
  {
    Loader loader(few, [&](int) { return std::make_unique<Counting>(made); });
    loader.next();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (made < 16 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(made, 16);  // two batches of eight, including the consumer's
  }
}

TEST_F(Loading, ASteadyStreamAllocatesNothing) {
  const ImageSet set = ImageSet::open(folder_.path());
  const ImageStream stream = stream_of(set);
  Loader loader(options(2), [&](int) { return make_image_pipeline(stream); });
  // Buffers grow until each worker has seen the largest image.
  std::uint64_t quiet = 0;
  for (int b = 0; b < 400 && quiet < 10; ++b) {
    const std::uint64_t before = test::allocations();
    loader.next();
    quiet = test::allocations() == before ? quiet + 1 : 0;
  }
  EXPECT_GE(quiet, 10u);
  EXPECT_GT(test::allocations(), 0u) << "the counter does not work";
}

TEST_F(Loading, TokensComeInTheSameOrderAndWhole) {
  std::vector<std::uint16_t> tokens(8 * 100 + 1);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::uint16_t>(i);
  const TokenSet set(folder_.write("t.bin", std::as_bytes(std::span(tokens))), 8);
  const TokenStream stream{&set, {9, set.windows(), 0, 1}, false};
  LoaderOptions small = options(3);
  small.sample_bytes = window_bytes(8);
  small.grain = 4;
  Loader loader(small, [&](int) { return make_token_pipeline(stream); });
  std::set<std::int64_t> seen;
  for (int b = 0; b < 12; ++b) {
    const Batch& batch = loader.next();
    for (std::size_t row = 0; row < 8; ++row) {
      const auto* window = reinterpret_cast<const std::int32_t*>(batch.data) + row * 9;
      for (int i = 0; i < 9; ++i) EXPECT_EQ(window[i], batch.indices[row] * 8 + i);
      seen.insert(batch.indices[row]);
    }
  }
  EXPECT_EQ(seen.size(), 96u);
}

TEST_F(Loading, RanksShareAnEpoch) {
  const ImageSet set = ImageSet::open(folder_.path());
  std::set<std::int64_t> seen;
  for (int rank = 0; rank < 2; ++rank) {
    const StreamOrder order{1, set.size(), rank, 2};
    for (std::int64_t position = 0; position < 5; ++position) seen.insert(order.image(position));
  }
  EXPECT_EQ(seen.size(), 10u);
}

}  // namespace
}  // namespace assay::data
