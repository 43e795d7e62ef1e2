// What descriptors say of themselves when no device could make them, and that every op refuses so.
#include "workloads/ops/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::ops {
namespace {

using testing::HasSubstr;

template <typename Desc>
std::string problem(const Desc& desc) {
  return problem_of(desc).value_or("");
}

ConvDesc conv() { return {.n = 2, .h = 8, .w = 6, .c = 12, .k = 18, .r = 3, .s = 3, .padding = 1, .groups = 6}; }

TEST(ConvProblems, SoundOnesHaveNone) {
  EXPECT_EQ(problem(conv()), "");
  EXPECT_EQ(problem(ConvDesc{.n = 1, .h = 1, .w = 1, .c = 1, .k = 1}), "");
  // A window as large as the padded image leaves one place.
  EXPECT_EQ(problem(ConvDesc{.n = 1, .h = 1, .w = 1, .c = 1, .k = 1, .r = 3, .s = 3, .padding = 1}), "");
}

TEST(ConvProblems, AreNamedOneByOne) {
  ConvDesc d = conv();
  d.h = 0;
  EXPECT_EQ(problem(d), "h must be at least 1, not 0");
  d = conv();
  d.stride = 0;
  EXPECT_EQ(problem(d), "stride must be at least 1, not 0");
  d = conv();
  d.padding = -1;
  EXPECT_EQ(problem(d), "padding must be at least 0, not -1");
  d = conv();
  d.groups = 0;
  EXPECT_EQ(problem(d), "groups must be at least 1, not 0");
  d = conv();
  d.groups = 9;
  EXPECT_EQ(problem(d), "9 groups do not divide 12 input channels");
  d = conv();
  d.groups = 4;
  EXPECT_EQ(problem(d), "4 groups do not divide 18 output channels");
  d = conv();
  d.s = 9;
  EXPECT_EQ(problem(d), "a window of 3 x 9 does not fit an image of 8 x 6 with padding 1");
  d = conv();
  d.gradient = DType::i32;
  EXPECT_EQ(problem(d), "i32 is not one of f64, f32, bf16, fp16");
}

AttentionDesc attention() {
  return {
      .batch = 1, .seq = 4, .heads = 6, .kv_heads = 2, .head_dim = 8, .q_stride = 48, .k_stride = 16, .v_stride = 80};
}

TEST(AttentionProblems, AreNamedOneByOne) {
  EXPECT_EQ(problem(attention()), "");
  AttentionDesc d = attention();
  d.seq = -1;
  EXPECT_EQ(problem(d), "seq must be at least 1, not -1");
  d = attention();
  d.kv_heads = 4;
  EXPECT_EQ(problem(d), "4 key and value heads do not divide 6 heads");
  d = attention();
  d.kv_heads = 12;
  EXPECT_EQ(problem(d), "12 key and value heads do not divide 6 heads");
  d = attention();
  d.q_stride = 47;
  EXPECT_EQ(problem(d), "q_stride must be at least 48 (6 heads of 8), not 47");
  d = attention();
  d.k_stride = 0;
  EXPECT_EQ(problem(d), "k_stride must be at least 16 (2 heads of 8), not 0");
  d = attention();
  d.v_stride = 15;
  EXPECT_EQ(problem(d), "v_stride must be at least 16 (2 heads of 8), not 15");
  d = attention();
  d.scale = -1;
  EXPECT_EQ(problem(d), "scale must be 0 (for 1 / sqrt(head_dim)) or above, not -1");
  d = attention();
  d.dtype = DType::s8;
  EXPECT_EQ(problem(d), "s8 is not one of f64, f32, bf16, fp16");
}

TEST(MatmulProblems, WhatDoesNotGoTogether) {
  MatmulDesc d{.m = 2, .n = 2, .k = 2};
  EXPECT_EQ(problem(d), "");
  d.epilogue = Epilogue::gelu_tanh;
  d.bias = true;
  EXPECT_EQ(problem(d), "");
  d.accumulate = true;
  EXPECT_THAT(problem(d), HasSubstr("does not accumulate"));
  d.accumulate = false;
  d.epilogue = Epilogue::gelu_erf_gradient;
  EXPECT_THAT(problem(d), HasSubstr("has no bias"));
  d = {.m = 2, .n = 2, .k = 2, .a = DType::u8, .b = DType::s8, .out = DType::i32};
  EXPECT_EQ(problem(d), "");
  d.row_sums = true;
  EXPECT_THAT(problem(d), HasSubstr("int8 product has no"));
}

TEST(OtherProblems, AreNamed) {
  EXPECT_THAT(problem(BatchNormDesc{.rows = 1, .channels = 3}), HasSubstr("at least 2 values a channel"));
  EXPECT_EQ(problem(BatchNormDesc{.rows = 1, .channels = 3, .training = false}), "");
  EXPECT_THAT(problem(PoolDesc{.n = 1, .h = 4, .w = 4, .c = 1, .window_h = 2, .window_w = 3, .padding = 2}),
              HasSubstr("padding must be at least 0 and below the window of 2 x 3, not 2"));
  EXPECT_THAT(problem(PoolDesc{.n = 1, .h = 4, .w = 4, .c = 1, .window_h = 5, .window_w = 3}),
              HasSubstr("a window of 5 x 3 does not fit an image of 4 x 4"));
  EXPECT_EQ(problem(NormDesc{.rows = 3, .columns = 0}), "columns must be at least 1, not 0");
  EXPECT_THAT(problem(RotaryDesc{.batch = 1, .seq = 1, .heads = 1, .head_dim = 3, .stride = 3}),
              HasSubstr("head_dim 3 is odd"));
  EXPECT_THAT(problem(RotaryDesc{.batch = 1, .seq = 1, .heads = 2, .head_dim = 4, .stride = 7}),
              HasSubstr("stride must be at least 8"));
  EXPECT_EQ(problem(EmbeddingDesc{.batch = 1, .seq = 1, .vocabulary = 0, .width = 1}),
            "vocabulary must be at least 1, not 0");
  EXPECT_THAT(problem(CrossEntropyDesc{.rows = 1, .classes = 5, .stride = 4}), HasSubstr("at least 5 classes"));
  EXPECT_THAT(problem(CrossEntropyDesc{.rows = 1, .classes = 5, .stride = 5, .smoothing = 1}),
              HasSubstr("below 1, not 1"));
  EXPECT_THAT(problem(CrossEntropyDesc{.rows = 1, .classes = 5, .stride = 5, .ignored = 4}),
              HasSubstr("the ignored target 4 is a class"));
}

TEST(OptimizerProblems, SegmentsCoverEveryElementOnce) {
  OptimizerDesc d;
  d.count = 10;
  d.segments = {{0, 4, 0.1}, {4, 10, 0}};
  EXPECT_EQ(problem(d), "");
  d.segments = {{0, 4, 0.1}, {5, 10, 0}};
  EXPECT_EQ(problem(d), "the decay segment [5, 10) does not follow element 4");
  d.segments = {{0, 4, 0.1}, {3, 10, 0}};
  EXPECT_EQ(problem(d), "the decay segment [3, 10) does not follow element 4");
  d.segments = {{0, 9, 0.1}};
  EXPECT_EQ(problem(d), "the decay segments cover 9 of 10 elements");
}

// The oracle gives the descriptor's own words, and its own where it has no such type.
TEST(ReferenceBackend, RefusesWithTheReason) {
  const auto backend = make_reference_backend();
  ConvDesc c = conv();
  c.groups = 9;
  EXPECT_EQ(backend->conv_forward(c).reason(), problem(c));
  EXPECT_EQ(backend->conv_backward_data(c).reason(), problem(c));
  EXPECT_EQ(backend->conv_backward_weights(c).reason(), problem(c));
  AttentionDesc a = attention();
  a.kv_heads = 4;
  EXPECT_EQ(backend->attention_forward(a).reason(), problem(a));
  EXPECT_EQ(backend->attention_backward(a).reason(), problem(a));
  a = attention();
  a.dtype = DType::s8;
  EXPECT_EQ(backend->attention_forward(a).reason(), problem(a));
  EXPECT_THAT(backend->batch_norm_backward({.rows = 4, .channels = 1, .training = false}).reason(),
              HasSubstr("no backward pass in evaluation"));
}

}  // namespace
}  // namespace assay::ops
