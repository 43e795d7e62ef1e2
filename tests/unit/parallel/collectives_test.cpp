// The calls of a step between ranks.
#include "workloads/parallel/collectives.h"

#include <gtest/gtest.h>

#include <vector>

namespace assay::parallel {
namespace {

using enum CollectiveKind;

TEST(Collectives, MoveBytesAsPapersCount) {
  const std::vector<Collective> calls = {
      {all_reduce, 100, DType::f32, 3}, {reduce_scatter, 50, DType::bf16, 2}, {all_gather, 10, DType::bf16, 4}};
  EXPECT_EQ(moved_by(calls).gradients, 3 * 2 * 400 + 2 * 100);
  EXPECT_EQ(moved_by(calls).weights, 4 * 20);
}

TEST(Collectives, OfNearlyTheSameSizeAreOneGroup) {
  const std::vector<Collective> groups = grouped({{all_reduce, 100, DType::f32, 1},
                                                  {all_gather, 100, DType::f32, 1},
                                                  {all_reduce, 111, DType::f32, 1},
                                                  {all_reduce, 110, DType::f32, 3}});
  EXPECT_EQ(groups, (std::vector<Collective>{{all_reduce, (100 + 3 * 110) / 4, DType::f32, 4},
                                             {all_reduce, 111, DType::f32, 1},
                                             {all_gather, 100, DType::f32, 1}}));
}

}  // namespace
}  // namespace assay::parallel
