// The calls of a step by layout, and their volume as Rajbhandari et al. 2019 count it: 2, 2, 2 and 3 times the weights.
#include "workloads/parallel/collectives.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace assay::parallel {
namespace {

const std::vector<std::int64_t> one_bucket = {3 << 20};
const std::vector<std::int64_t> two_blocks = {1 << 20, 1 << 21};

// Elements in all calls of a kind.
std::map<CollectiveKind, std::int64_t> volume(int zero, std::int64_t accumulate) {
  std::map<CollectiveKind, std::int64_t> all;
  for (const Collective& one : collectives_of(one_bucket, two_blocks, {}, {.dp = 8, .zero = zero}, accumulate))
    all[one.kind] += one.elements * one.count;
  return all;
}

TEST(Collectives, SendWhatTheStageOfZeroSends) {
  using Volume = std::map<CollectiveKind, std::int64_t>;
  constexpr std::int64_t p = 3 << 20;
  EXPECT_EQ(volume(0, 4), (Volume{{CollectiveKind::all_reduce, p}}));
  EXPECT_EQ(volume(1, 4), (Volume{{CollectiveKind::reduce_scatter, p}, {CollectiveKind::all_gather, p}}));
  EXPECT_EQ(volume(2, 1), (Volume{{CollectiveKind::reduce_scatter, p}, {CollectiveKind::all_gather, p}}));
  EXPECT_EQ(volume(3, 1), (Volume{{CollectiveKind::reduce_scatter, p}, {CollectiveKind::all_gather, 2 * p}}));
  EXPECT_EQ(volume(3, 4), (Volume{{CollectiveKind::reduce_scatter, 4 * p}, {CollectiveKind::all_gather, 8 * p}}));
}

TEST(Collectives, GatherWeightsAndReduceGradientsInTheirTypes) {
  for (const Collective& one : collectives_of(one_bucket, two_blocks, {.parameter = 2}, {.dp = 8, .zero = 3}, 1))
    EXPECT_EQ(one.element_bytes, one.kind == CollectiveKind::all_gather ? 2 : 4);
}

TEST(Collectives, ArePaddedToEqualSlices) {
  const std::vector<std::int64_t> odd = {17};
  for (const Collective& one : collectives_of({}, odd, {}, {.dp = 3, .zero = 1}, 1)) EXPECT_EQ(one.elements, 3 * 16);
}

TEST(Collectives, OfNearlyTheSameSizeAreOneGroup) {
  using enum CollectiveKind;
  const std::vector<Collective> groups =
      grouped({{all_reduce, 100, 4, 1}, {all_gather, 100, 4, 1}, {all_reduce, 111, 4, 1}, {all_reduce, 110, 4, 3}});
  EXPECT_EQ(groups, (std::vector<Collective>{
                        {all_reduce, (100 + 3 * 110) / 4, 4, 4}, {all_reduce, 111, 4, 1}, {all_gather, 100, 4, 1}}));
}

}  // namespace
}  // namespace assay::parallel
