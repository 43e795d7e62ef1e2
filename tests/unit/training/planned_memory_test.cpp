// Memory in use beside the plan.
#include "workloads/training/planned_memory.h"

#include <gtest/gtest.h>

namespace assay::training {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

TEST(PlannedMemory, OnlyTheAllowanceMayBeUsedBesides) {
  EXPECT_EQ(share_off_plan(16 * gib, 16 * gib, gib), 0);
  EXPECT_EQ(share_off_plan(16 * gib, 17 * gib, gib), 0);
  EXPECT_EQ(share_off_plan(16 * gib, 18 * gib, gib), 1.0 / 16);
  EXPECT_EQ(share_off_plan(16 * gib, 18 * gib, 0), 2.0 / 16);
  EXPECT_EQ(share_off_plan(16 * gib, 12 * gib, gib), 0.25);
}

}  // namespace
}  // namespace assay::training
