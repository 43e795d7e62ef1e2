// Random fills: any split gives the same bytes, and the moments match the distribution.
#include "workloads/ops/random.h"

#include "harness/core/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace assay::ops {
namespace {

TEST(FillRandom, IsAFunctionOfTheIndexAlone) {
  const Rng rng(5, "x");
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::u8, DType::s8}) {
    std::vector<char> whole(101 * size_of(dtype)), parts(whole.size());
    fill_random(whole.data(), dtype, 0, 101, rng);
    fill_random(parts.data(), dtype, 37, 101, rng);
    fill_random(parts.data(), dtype, 0, 37, rng);
    EXPECT_EQ(whole, parts) << name_of(dtype);
  }
}

TEST(FillRandom, NormalHasItsMomentsAndQuantiles) {
  std::vector<float> x(1 << 20);
  fill_random(x.data(), DType::f32, 0, static_cast<std::int64_t>(x.size()), Rng(1, "a"));
  double sum = 0, squares = 0, fourth = 0;
  for (const float v : x) {
    const double d = static_cast<double>(v);
    sum += d, squares += d * d, fourth += d * d * d * d;
  }
  const double n = static_cast<double>(x.size());
  EXPECT_NEAR(sum / n, 0, 0.005);
  EXPECT_NEAR(squares / n, 1, 0.01);
  EXPECT_NEAR(fourth / n, 3, 0.1);
  const double below = static_cast<double>(std::count_if(x.begin(), x.end(), [](float v) { return v < -1.959964f; }));
  EXPECT_NEAR(below / n, 0.025, 0.001);
}

TEST(FillRandom, IntegersCoverTheirRange) {
  std::vector<std::uint8_t> u(1 << 16);
  std::vector<std::int8_t> s(1 << 16);
  fill_random(u.data(), DType::u8, 0, 1 << 16, Rng(1, "a"));
  fill_random(s.data(), DType::s8, 0, 1 << 16, Rng(1, "b"));
  EXPECT_EQ(*std::min_element(u.begin(), u.end()), 0);
  EXPECT_EQ(*std::max_element(u.begin(), u.end()), 255);
  EXPECT_EQ(*std::min_element(s.begin(), s.end()), -128);
  EXPECT_EQ(*std::max_element(s.begin(), s.end()), 127);
  fill_random(u.data(), DType::u8, 0, 1 << 16, Rng(1, "a"), true);
  EXPECT_EQ(*std::max_element(u.begin(), u.end()), 127);
}

TEST(FillRandom, RefusesOtherTypes) {
  std::int64_t x = 0;
  EXPECT_THROW(fill_random(&x, DType::i64, 0, 1, Rng(1, "a")), Error);
}

}  // namespace
}  // namespace assay::ops
