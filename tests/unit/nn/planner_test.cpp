// Arenas: arrays that live at the same time do not overlap, and small cases are nearly optimal.
#include "workloads/nn/planner.h"
#include "workloads/nn/parameter_layout.h"

#include "harness/core/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace assay::nn {
namespace {

std::vector<Lifetime> random_lifetimes(std::uint64_t seed, std::size_t count, std::uint64_t steps, std::uint64_t size) {
  const Rng rng(seed, "lifetimes");
  std::vector<Lifetime> list;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t first = rng.below(3 * i, steps), last = std::min(steps - 1, first + rng.below(3 * i + 1, steps));
    list.push_back({1 + rng.below(3 * i + 2, size), first, last});
  }
  return list;
}

void expect_sound(const std::vector<Lifetime>& list, const ArenaPlan& plan, std::size_t alignment) {
  for (std::size_t a = 0; a < list.size(); ++a) {
    EXPECT_EQ(plan.offsets[a] % alignment, 0u);
    EXPECT_LE(plan.offsets[a] + list[a].bytes, plan.bytes);
    for (std::size_t b = 0; b < a; ++b) {
      const bool together = list[a].first <= list[b].last && list[b].first <= list[a].last;
      const bool apart =
          plan.offsets[a] + list[a].bytes <= plan.offsets[b] || plan.offsets[b] + list[b].bytes <= plan.offsets[a];
      EXPECT_TRUE(!together || apart) << a << " and " << b;
    }
  }
  EXPECT_GE(plan.bytes, plan.live);
}

TEST(Planner, ArraysAliveAtOnceDoNotOverlap) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto list = random_lifetimes(seed, 1 + seed, 20, 5000);
    expect_sound(list, plan_arena(list, 64), 64);
  }
}

TEST(Planner, LiveIsTheMaximumAtOneInstruction) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto list = random_lifetimes(seed, 30, 15, 900);
    const ArenaPlan plan = plan_arena(list, 1);
    std::size_t max_alive = 0;
    for (std::size_t i = 0; i < 15; ++i) {
      std::size_t alive = 0;
      for (const Lifetime& life : list) alive += life.first <= i && i <= life.last ? life.bytes : 0;
      max_alive = std::max(max_alive, alive);
      if (i == plan.peak_at) {
        EXPECT_EQ(alive, plan.live);
      }
    }
    EXPECT_EQ(plan.live, max_alive);
  }
}

// The smallest arena over all orders of placing arrays at the lowest free offset: no plan is smaller.
std::size_t smallest(const std::vector<Lifetime>& list) {
  std::vector<std::size_t> order(list.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::size_t best = SIZE_MAX;
  do {
    std::vector<std::size_t> offsets(list.size()), placed;
    std::size_t top = 0;
    for (const std::size_t i : order) {
      std::size_t offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (const std::size_t other : placed) {
          const bool together = list[i].first <= list[other].last && list[other].first <= list[i].last;
          if (!together || offset >= offsets[other] + list[other].bytes || offset + list[i].bytes <= offsets[other])
            continue;
          offset = offsets[other] + list[other].bytes;
          moved = true;
        }
      }
      offsets[i] = offset;
      placed.push_back(i);
      top = std::max(top, offset + list[i].bytes);
    }
    best = std::min(best, top);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(Planner, SmallCasesAreWithinTenPercentOfTheBest) {
  std::size_t planned = 0, best = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto list = random_lifetimes(seed, 6, 8, 100);
    const std::size_t optimum = smallest(list), bytes = plan_arena(list, 1).bytes;
    EXPECT_GE(bytes, optimum);
    planned += bytes;
    best += optimum;
  }
  EXPECT_LE(static_cast<double>(planned), 1.1 * static_cast<double>(best));
}

TEST(Planner, NestedLifetimesAreTight) {
  // As in a forward and backward pass: array i lives from i to 2 n - i.
  std::vector<Lifetime> list;
  for (std::size_t i = 0; i < 50; ++i) list.push_back({1000 + 100 * (i % 7), i, 100 - i});
  const ArenaPlan plan = plan_arena(list, 1);
  EXPECT_EQ(plan.bytes, plan.live);
  EXPECT_EQ(plan_arena({}, 64).bytes, 0u);
}

TEST(ParameterLayout, BucketsAreSlicesInOrderOfReadiness) {
  std::vector<ParameterSpec> specs;
  std::vector<std::size_t> ready;
  for (std::int64_t i = 0; i < 9; ++i) {
    specs.push_back({.name = std::to_string(i), .shape = {i % 3 == 2 ? 5 : 40 + i}, .decay = i % 3 != 2});
    ready.push_back(static_cast<std::size_t>(100 - 10 * i));
  }
  const ParameterLayout layout = lay_out(specs, ready, {100});
  std::vector<bool> covered(static_cast<std::size_t>(layout.count));
  std::size_t last = 0;
  for (const Bucket& bucket : layout.buckets) {
    EXPECT_GE(bucket.ready, last);
    last = bucket.ready;
    for (std::int64_t e = bucket.begin; e < bucket.end; ++e) {
      EXPECT_FALSE(covered[static_cast<std::size_t>(e)]);
      covered[static_cast<std::size_t>(e)] = true;
    }
    for (std::size_t p = 0; p < specs.size(); ++p)
      if (layout.begin[p] >= bucket.begin && layout.begin[p] < bucket.end) {
        EXPECT_LE(ready[p], bucket.ready);
        EXPECT_LE(layout.begin[p] + specs[p].count(), bucket.end);
      }
  }
  EXPECT_TRUE(std::all_of(covered.begin(), covered.end(), [](bool c) { return c; }));
  EXPECT_GT(layout.buckets.size(), 2u);
  for (std::size_t p = 0; p < specs.size(); ++p) EXPECT_EQ(layout.begin[p] < layout.decayed, specs[p].decay);
}

TEST(ParameterLayout, LeavesTheRequestedRoom) {
  const std::vector<ParameterSpec> specs = {{.name = "a", .shape = {40}}, {.name = "b", .shape = {3, 16}}};
  const std::vector<std::size_t> ready = {1, 2};
  const std::vector<std::int64_t> room = {9, 16};
  const ParameterLayout layout = lay_out(specs, ready, {1000}, room);
  EXPECT_EQ(layout.begin, (std::vector<std::int64_t>{0, 64}));
  EXPECT_EQ(layout.count, 128);
  EXPECT_EQ(layout.buckets.back().end, 128);
}

}  // namespace
}  // namespace assay::nn
