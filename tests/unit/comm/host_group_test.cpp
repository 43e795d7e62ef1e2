// The host side of a GPU world, with ranks as threads.
#include "harness/comm/host_group.h"
#include "harness/core/error.h"
#include "tests/support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace assay {
namespace {

using testing::HasSubstr;

// Passes rank 0's text to the others.
class Carrier {
 public:
  HostGroup::Share share(int rank) {
    return [this, rank](const std::string& own) {
      if (rank == 0) promise_.set_value(own);
      return text_.get();
    };
  }

 private:
  std::promise<std::string> promise_;
  std::shared_future<std::string> text_ = promise_.get_future().share();
};

void run_group(int ranks, const std::function<void(HostGroup&)>& fn) {
  Carrier carrier;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      HostGroup group(rank, ranks, false, carrier.share(rank), 20, rank == 0 ? "an id" : "");
      fn(group);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(HostGroup, GathersBytesOfEveryRankAndPassesTheNote) {
  for (const int ranks : {1, 2, 5})
    run_group(ranks, [&](HostGroup& group) {
      EXPECT_EQ(group.note(), "an id");
      for (const std::size_t bytes : {0u, 1u, 8u, 3000000u}) {
        const std::vector<char> own(bytes, static_cast<char>('a' + group.rank()));
        std::vector<char> all(bytes * static_cast<std::size_t>(ranks));
        group.all_gather(own.data(), all.data(), bytes);
        for (std::size_t i = 0; i < all.size(); i += bytes / 3 + 1)
          ASSERT_EQ(all[i], 'a' + static_cast<char>(i / bytes)) << i;
      }
    });
}

TEST(HostGroup, SplitsByColourInTheOrderOfKeys) {
  run_group(5, [](HostGroup& group) {
    const auto part = group.split(group.rank() % 2, -group.rank());
    EXPECT_EQ(part->size(), group.rank() % 2 ? 2 : 3);
    EXPECT_EQ(part->rank(), part->size() - 1 - group.rank() / 2);
    const int own = group.rank();
    std::vector<int> all(static_cast<std::size_t>(part->size()));
    part->all_gather(&own, all.data(), sizeof own);
    for (std::size_t i = 0; i < all.size(); ++i)
      EXPECT_EQ(all[i], 2 * (part->size() - 1 - static_cast<int>(i)) + group.rank() % 2);
  });
}

TEST(HostGroup, ABarrierWaitsForTheLastRank) {
  std::atomic<int> come = 0;
  run_group(4, [&](HostGroup& group) {
    for (int round = 1; round <= 20; ++round) {
      if (group.rank() == round % 4) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ++come;
      group.barrier();
      EXPECT_GE(come, 4 * round);
      group.barrier();
    }
  });
}

TEST(HostGroup, ARankThatNeverArrivesIsNamed) {
  Carrier carrier;
  std::thread first([&] {
    EXPECT_THAT(test::refusal<Error>([&] { HostGroup(0, 3, false, carrier.share(0), 0.5); }),
                HasSubstr("waiting for rank 2 of 3"));
  });
  std::thread second([&] { HostGroup(1, 3, false, carrier.share(1), 20); });
  second.join();
  first.join();
}

TEST(HostGroup, ADisconnectedRankIsNamed) {
  run_group(3, [](HostGroup& group) {
    if (group.rank() == 2) return;
    const int own = 0;
    std::vector<int> all(3);
    const std::string message = test::refusal<Error>([&] { group.all_gather(&own, all.data(), sizeof own); });
    EXPECT_EQ(message, group.rank() == 0 ? "rank 2 disconnected" : "rank 0 disconnected");
  });
}

TEST(HostGroup, AnInvalidAddressIsAnError) {
  const auto share = [](const std::string&) { return std::string("nonsense"); };
  EXPECT_THAT(test::refusal<Error>([&] { HostGroup(1, 2, false, share, 1); }), HasSubstr("nonsense"));
}

}  // namespace
}  // namespace assay
