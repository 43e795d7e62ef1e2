// What `history check --confirm` does in a night: which commits it measures, what it finds, and what a budget cuts.
#include "harness/history/tonight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::history {
namespace {

// Bisects `commits` of which those from `first` on have it, and these do not build; how many were asked.
std::pair<Narrowed, int> bisected(std::size_t commits, std::size_t first, const std::set<std::size_t>& broken,
                                  int most = 100) {
  int asked = 0;
  const auto has = [&](std::size_t at) -> std::optional<bool> {
    EXPECT_LT(at, commits - 1) << "the last one is known to have it";
    ++asked;
    return broken.contains(at) ? std::nullopt : std::optional(at >= first);
  };
  const Narrowed found = bisect(commits, has, [&] { return asked < most; });
  return {found, asked};
}

TEST(BisectCommits, FindsTheFirstThatHasIt) {
  for (const std::size_t commits : {1u, 2u, 3u, 10u, 64u})
    for (std::size_t first = 0; first < commits; ++first) {
      const auto [found, asked] = bisected(commits, first, {});
      EXPECT_EQ(found.first, first);
      EXPECT_EQ(found.last, first);
      EXPECT_LE(asked, 7);
    }
}

TEST(BisectCommits, AsksTheNeighboursOfOneThatDoesNotBuild) {
  for (std::size_t first = 0; first < 9; ++first)
    for (std::size_t broken = 0; broken < 8; ++broken) {
      const auto [found, asked] = bisected(9, first, {broken});
      EXPECT_LE(found.first, first);
      EXPECT_GE(found.last, first);
      // Beside a commit that cannot be asked it may be either.
      EXPECT_LE(found.last - found.first, first == broken || first == broken + 1 ? 1u : 0u) << first << " " << broken;
    }
}

TEST(BisectCommits, WithoutTimeSaysWhichItMayBe) {
  const auto [found, asked] = bisected(64, 5, {}, 2);
  EXPECT_EQ(asked, 2);
  EXPECT_LE(found.first, 5u);
  EXPECT_GE(found.last, 5u);
  EXPECT_EQ(found.last - found.first, 15u);
  const auto [none, count] = bisected(4, 1, {0, 1, 2});
  EXPECT_EQ(none.first, 0u);
  EXPECT_EQ(none.last, 3u);
  EXPECT_EQ(count, 3);
}

TEST(ByHalves, SpreadsWhateverItIsCutTo) {
  EXPECT_EQ(by_halves(0), std::vector<std::size_t>{});
  EXPECT_EQ(by_halves(1), std::vector<std::size_t>{0});
  EXPECT_EQ(by_halves(9), (std::vector<std::size_t>{8, 0, 4, 6, 2, 7, 5, 3, 1}));
}

}  // namespace
}  // namespace assay::history
