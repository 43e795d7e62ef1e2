// Division of a host's CPUs between its ranks.
#include "harness/hosts/cpu_share.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace assay {
namespace {

TEST(CpuShare, WholeCoresThenSingleCpusThenShared) {
  const std::vector<std::vector<int>> cores = {{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  EXPECT_EQ(cpu_share(cores, 0, 1).size(), 8u);
  EXPECT_EQ(cpu_share(cores, 1, 2), (std::vector<int>{2, 6, 3, 7}));
  EXPECT_EQ(cpu_share(cores, 2, 4), (std::vector<int>{2, 6}));
  EXPECT_EQ(cpu_share(cores, 1, 8), (std::vector<int>{4}));
  EXPECT_EQ(cpu_share(cores, 9, 16), (std::vector<int>{4}));
  // If there are enough, every CPU belongs to exactly one rank.
  for (int ranks = 1; ranks <= 8; ++ranks) {
    std::set<int> seen;
    for (int rank = 0; rank < ranks; ++rank)
      for (const int cpu : cpu_share(cores, rank, ranks)) EXPECT_TRUE(seen.insert(cpu).second) << ranks;
    EXPECT_EQ(seen.size(), 8u) << ranks;
  }
}

}  // namespace
}  // namespace assay
