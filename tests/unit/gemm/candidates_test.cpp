// The choice among forms, and the sampled results by which products are checked.
#include "suites/gemm/candidates.h"

#include "suites/gemm/sampled_rows.h"

#include <gtest/gtest.h>

#include <limits>

namespace assay::gemm {
namespace {

std::vector<Candidate> timed(double plain, double packed, double inner_product) {
  std::vector<Candidate> all(3);
  all[0].form = ops::WeightForm::plain, all[0].seconds = plain;
  all[1].form = ops::WeightForm::packed, all[1].seconds = packed;
  all[2].form = ops::WeightForm::inner_product, all[2].seconds = inner_product;
  return all;
}

TEST(Choose, ChoosesTheFastestAndBreaksTiesByForm) {
  EXPECT_EQ(choose(timed(1.0, 0.8, 0.9)), 1u);
  EXPECT_EQ(choose(timed(0.5, 0.8, 0.9)), 0u);
  EXPECT_EQ(choose(timed(1.0, 0.995 * 1.004, 0.995)), 1u);
  EXPECT_EQ(choose(timed(0.995, 1.2, 1.0)), 2u);
  EXPECT_EQ(choose(timed(1.0, 1.02, 1.2)), 0u);
}

TEST(Choose, LeavesOutWhatWasNotTried) {
  EXPECT_EQ(choose(timed(0, 0.8, 0)), 1u);
  EXPECT_EQ(choose(timed(0, 0.8, 0.7)), 2u);
}

TEST(SampleRows, IncludeFirstAndLastWithoutDuplicates) {
  for (const std::int64_t m : {1, 2, 17, 18, 19, 1000}) {
    const auto rows = sample_rows(m);
    EXPECT_EQ(rows.front(), 0);
    EXPECT_EQ(rows.back(), m - 1);
    EXPECT_GE(static_cast<std::int64_t>(rows.size()), std::min<std::int64_t>(m, 16));
    for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_LT(rows[i - 1], rows[i]);
  }
}

class Rows : public testing::Test {
 protected:
  // a (2, 3) x b (3, 2) = ((58, 64), (139, 154))
  Shape shape_{.m = 2, .n = 2, .k = 3, .types = {DType::f32, DType::f32, DType::f32}};
  float a_[6] = {1, 2, 3, 4, 5, 6};
  float b_[6] = {7, 8, 9, 10, 11, 12};
  float b_transposed_[6] = {7, 9, 11, 8, 10, 12};
  float a_transposed_[6] = {1, 4, 2, 5, 3, 6};
  cpu::Team team_{1};
};

TEST_F(Rows, RightAnswersPassInEveryTranspose) {
  const float got[4] = {58, 64, 139, 154};
  for (int transpose = 0; transpose < 4; ++transpose) {
    shape_.transpose_a = transpose & 1;
    shape_.transpose_b = transpose & 2;
    const SampledRows rows(shape_, transpose & 1 ? a_transposed_ : a_, transpose & 2 ? b_transposed_ : b_, team_);
    Mismatch mismatch;
    rows.compare(0, got, "", mismatch);
    rows.compare(1, got + 2, "", mismatch);
    EXPECT_EQ(mismatch.wrong, 0) << transpose;
    EXPECT_EQ(mismatch.elements, 4);
    EXPECT_EQ(mismatch.relative_l2(), 0);
  }
}

TEST_F(Rows, WrongElementsAreCountedAndNamed) {
  const SampledRows rows(shape_, a_, b_, team_);
  const float got[2] = {139, std::numeric_limits<float>::quiet_NaN()};
  Mismatch mismatch;
  rows.compare(1, got, " of output 3", mismatch);
  EXPECT_EQ(mismatch.wrong, 1);
  ASSERT_EQ(mismatch.culprits.size(), 1u);
  EXPECT_EQ(mismatch.culprits.front(), "row 1, column 1 of output 3: nan, not 154");
  EXPECT_FALSE(mismatch.relative_l2() <= 1);
}

TEST_F(Rows, AFlippedExponentBitIsWrongEverywhere) {
  const SampledRows rows(shape_, a_, b_, team_);
  const float right[2] = {58, 64};
  for (int column = 0; column < 2; ++column) {
    float got[2] = {right[0], right[1]};
    got[column] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(got[column]) ^ 0x40000000u);
    Mismatch mismatch;
    rows.compare(0, got, "", mismatch);
    EXPECT_EQ(mismatch.wrong, 1);
  }
}

TEST_F(Rows, IntegersMustBeExact) {
  shape_.types = {DType::u8, DType::s8, DType::i32};
  const std::uint8_t a[6] = {255, 2, 3, 4, 5, 6};
  const std::int8_t b[6] = {-128, 8, 9, 10, 11, 12};
  const SampledRows rows(shape_, a, b, team_);
  std::int32_t got[2] = {255 * -128 + 18 + 33, 255 * 8 + 20 + 36};
  Mismatch right, wrong;
  rows.compare(0, got, "", right);
  EXPECT_EQ(right.wrong, 0);
  ++got[1];
  rows.compare(0, got, "", wrong);
  EXPECT_EQ(wrong.wrong, 1);
}

}  // namespace
}  // namespace assay::gemm
