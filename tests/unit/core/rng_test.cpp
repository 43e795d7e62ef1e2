#include "harness/core/rng.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

// From Random123's kat_vectors for philox4x32-10.
TEST(Philox, KnownAnswers) {
  using Block = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t f = 0xffffffff;
  EXPECT_EQ(philox({f, f, f, f}, {f, f}), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, NormalHasUnitMoments) {
  const Rng rng(7, "test");
  double sum = 0, squares = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double x = rng.normal(static_cast<std::uint64_t>(i));
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / n, 0.0, 0.02);
  EXPECT_NEAR(squares / n, 1.0, 0.02);
}

TEST(Rng, PurposesAndSeedsDiffer) {
  EXPECT_NE(Rng(1, "a").u64(0), Rng(1, "b").u64(0));
  EXPECT_NE(Rng(1, "a").u64(0), Rng(2, "a").u64(0));
  EXPECT_EQ(Rng(1, "a").u64(5), Rng(1, "a").u64(5));
}

}  // namespace
}  // namespace assay
