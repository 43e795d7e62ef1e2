// FLOPs and bytes of operators by their recorded shapes: every figure is computed by hand.
#include "harness/kineto/products.h"

#include <gtest/gtest.h>

namespace assay::kineto {
namespace {

struct Tensor {
  std::vector<std::int64_t> sizes;
  std::string value = {};
};

Inputs inputs_of(const std::vector<Tensor>& tensors, const std::string& type = "float") {
  Inputs inputs;
  for (const Tensor& one : tensors) {
    inputs.add_shape();
    for (const std::int64_t size : one.sizes) inputs.add_size(size);
    inputs.add_type(one.sizes.empty() ? "Scalar" : type);
    inputs.add_value(one.value);
  }
  return inputs;
}

void expect_work(ProductKind kind, const Inputs& inputs, double flops, double bytes) {
  const auto work = work_of(kind, inputs);
  ASSERT_TRUE(work);
  EXPECT_DOUBLE_EQ(work->flops, flops);
  EXPECT_DOUBLE_EQ(work->bytes, bytes);
}

TEST(KinetoProducts, MatrixProducts) {
  expect_work(ProductKind::mm, inputs_of({{{4, 5}}, {{5, 6}}}, "c10::BFloat16"), 2 * 4 * 5 * 6, 2 * (20 + 30 + 24));
  expect_work(ProductKind::addmm, inputs_of({{{6}}, {{4, 5}}, {{5, 6}}, {{}, "1"}, {{}, "1"}}), 240, 4 * (74 + 6));
  expect_work(ProductKind::addmm, inputs_of({{{6}}, {{4, 5}}, {{5, 6}}, {{}, "0"}, {{}, "1"}}), 240, 4 * 74);
  expect_work(ProductKind::bmm, inputs_of({{{3, 4, 5}}, {{3, 5, 6}}}, "double"), 3 * 240, 8 * 3 * 74);
  expect_work(ProductKind::baddbmm, inputs_of({{{3, 4, 6}}, {{3, 4, 5}}, {{3, 5, 6}}, {{}, "1"}, {{}, "1"}}), 3 * 240,
              4 * 3 * (74 + 24));
  EXPECT_EQ(work_of(ProductKind::mm, inputs_of({{{4, 5}}, {{5, 6}}}, "c10::Half"))->dtype, DType::fp16);
}

TEST(KinetoProducts, Convolutions) {
  const auto forward = [](std::vector<std::int64_t> input, std::vector<std::int64_t> weight, const std::string& stride,
                          const std::string& padding, const std::string& transposed, const std::string& more,
                          const std::string& groups) {
    return inputs_of({{std::move(input)},
                      {std::move(weight)},
                      {{}},
                      {{}, stride},
                      {{}, padding},
                      {{}, "[1, 1]"},
                      {{}, transposed},
                      {{}, more},
                      {{}, groups}});
  };
  // 2 x 8 x 16 x 16 outputs of 3 x 3 x 3 products each.
  expect_work(ProductKind::convolution,
              forward({2, 3, 32, 32}, {8, 3, 3, 3}, "[2, 2]", "[1, 1]", "False", "[0, 0]", "1"), 2 * 4096 * 27,
              4 * (6144 + 216 + 4096));
  // The other way round: 2 x 3 x 32 x 32 outputs.
  expect_work(ProductKind::convolution,
              forward({2, 8, 16, 16}, {8, 3, 3, 3}, "[2, 2]", "[1, 1]", "True", "[1, 1]", "1"), 2 * 4096 * 27,
              4 * (4096 + 216 + 6144));
  // Each of four channels by itself; one padding for both dimensions.
  expect_work(ProductKind::convolution, forward({1, 4, 8, 8}, {4, 1, 3, 3}, "[1]", "[1]", "False", "[0, 0]", "4"),
              2 * 256 * 9, 4 * (256 + 36 + 256));
  const auto backward = [](const std::string& asked) {
    return inputs_of({{{2, 8, 16, 16}},
                      {{2, 3, 32, 32}},
                      {{8, 3, 3, 3}},
                      {{}, "[8]"},
                      {{}, "[2, 2]"},
                      {{}, "[1, 1]"},
                      {{}, "[1, 1]"},
                      {{}, "False"},
                      {{}, "[0, 0]"},
                      {{}, "1"},
                      {{}, asked}});
  };
  expect_work(ProductKind::convolution_backward, backward("[False, True, True]"), 221184, 4 * (4096 + 6360));
  expect_work(ProductKind::convolution_backward, backward("[True, False, False]"), 221184, 4 * (4096 + 6360));
  expect_work(ProductKind::convolution_backward, backward("[True, True, True]"), 442368, 4 * (4096 + 2 * 6360));
  EXPECT_FALSE(work_of(ProductKind::convolution_backward, backward("[False, False, True]")));
}

TEST(KinetoProducts, AttentionCountsThePairsThatItsMaskLeaves) {
  const auto attention = [](std::int64_t queries, const std::string& causal, std::vector<std::int64_t> mask = {}) {
    return inputs_of(
        {{{2, 4, queries, 8}}, {{2, 4, 16, 8}}, {{2, 4, 16, 6}}, {std::move(mask)}, {{}, "0."}, {{}, causal}});
  };
  expect_work(ProductKind::attention, attention(16, "False"), 2 * 8 * 256 * 14, 4 * 8 * 16 * (8 + 8 + 6 + 6));
  expect_work(ProductKind::attention, attention(16, "True"), 2 * 8 * 136 * 14, 4 * 8 * 16 * 28);
  expect_work(ProductKind::attention, attention(2, "True"), 2 * 8 * 3 * 14, 4 * 8 * (2 * 14 + 16 * 14));
  expect_work(ProductKind::attention, attention(16, "False", {16, 16}), 2 * 8 * 256 * 14, 4 * (8 * 16 * 28 + 256));
}

TEST(KinetoProducts, WhatIsNotKnownHasNoFigure) {
  EXPECT_FALSE(work_of(ProductKind::mm, Inputs()));
  EXPECT_FALSE(work_of(ProductKind::mm, inputs_of({{{4, 5}}})));
  EXPECT_FALSE(work_of(ProductKind::mm, inputs_of({{{4, 5}}, {{6, 6}}})));
  EXPECT_FALSE(work_of(ProductKind::mm, inputs_of({{{4, 5}}, {{5, 6}}}, "c10::complex<float>")));
  EXPECT_FALSE(work_of(ProductKind::mm, inputs_of({{{0, 5}}, {{5, 6}}})));
  EXPECT_FALSE(work_of(ProductKind::mm, inputs_of({{{-4, 5}}, {{5, 6}}})));
  EXPECT_FALSE(work_of(ProductKind::mm, inputs_of({{{std::int64_t(1) << 60, 5}}, {{5, 6}}})));
  EXPECT_FALSE(work_of(ProductKind::bmm, inputs_of({{{3, 4, 5}}, {{2, 5, 6}}})));
  EXPECT_FALSE(work_of(ProductKind::convolution, inputs_of({{{2, 3, 32, 32}}, {{8, 3, 3, 3}}})));
  // A query that is used for several batches.
  EXPECT_FALSE(work_of(ProductKind::attention,
                       inputs_of({{{1, 16, 8}}, {{4, 16, 8}}, {{4, 16, 8}}, {{}}, {{}, "0."}, {{}, "False"}})));
  EXPECT_FALSE(product_kind("aten::mul"));
}

TEST(KinetoProducts, AKernelIsHeldAgainstWhatItsSheetAllows) {
  HardwareSheet sheet;
  sheet.peak = {{"bf16", 1e12}, {"f32", 1e11}, {"tf32", 5e11}};
  sheet.memory_bandwidth = 1e10;
  const auto limited = [&](DType dtype, double flops, double bytes, const std::string& kernel) {
    TracedWork work = traced_work({flops, bytes, dtype}, 2);
    limit_by(&sheet, kernel, work);
    return work;
  };
  const TracedWork computing = limited(DType::bf16, 1e12, 1e9, "nvjet_tst_128x256");
  EXPECT_DOUBLE_EQ(*computing.of_bound(), 0.5);  // 1 s at the peak, in 2 s
  EXPECT_STREQ(computing.bound_by(), "peak");
  const TracedWork moving = limited(DType::bf16, 1e9, 1e10, "nvjet_tst_128x256");
  EXPECT_DOUBLE_EQ(*moving.of_bound(), 0.5);
  EXPECT_STREQ(moving.bound_by(), "memory");
  // Operands in f32 may be multiplied as tf32, and only the kernel's name tells.
  EXPECT_DOUBLE_EQ(*limited(DType::f32, 1e11, 1, "ampere_sgemm_128x64_tn").of_bound(), 0.5);
  EXPECT_DOUBLE_EQ(*limited(DType::f32, 5e11, 1, "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n").of_bound(), 0.5);
  EXPECT_FALSE(limited(DType::f32, 1e11, 1, "cutlass_80_tensorop_s1688gemm_128x128").least);
  EXPECT_FALSE(limited(DType::bf16, 1e11, 1, "winograd_nonfused_2x2").least);
  EXPECT_FALSE(limited(DType::fp16, 1e11, 1, "nvjet_hsh").least);  // not in the sheet
}

}  // namespace
}  // namespace assay::kineto
