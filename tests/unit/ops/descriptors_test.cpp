// The problems that descriptors report before any device is asked, and that the reference backend refuses with them.
#include "tests/oracle/oracle.h"
#include "workloads/ops/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::ops {
namespace {

using testing::HasSubstr;

template <typename Desc, typename Value>
Desc with(Desc desc, Value Desc::*member, std::type_identity_t<Value> value) {
  desc.*member = std::move(value);
  return desc;
}

template <typename Desc>
std::string problem(const Desc& desc) {
  return problem_of(desc).value_or("");
}

constexpr ConvDesc conv{.n = 2, .h = 8, .w = 6, .c = 12, .k = 18, .r = 3, .s = 3, .padding = 1, .groups = 6};
constexpr AttentionDesc attention{
    .batch = 1, .seq = 4, .heads = 6, .kv_heads = 2, .head_dim = 8, .q_stride = 48, .k_stride = 16, .v_stride = 80};
constexpr MatmulDesc matmul{.m = 2, .n = 2, .k = 2};
constexpr MatmulDesc gelu{.m = 2, .n = 2, .k = 2, .bias = true, .epilogue = Epilogue::gelu_tanh};
constexpr MatmulDesc int8{.m = 2, .n = 2, .k = 2, .a = DType::u8, .b = DType::s8, .out = DType::i32};
constexpr BatchNormDesc one_row{.rows = 1, .channels = 3};
constexpr PoolDesc pool{.n = 1, .h = 4, .w = 4, .c = 1, .window_h = 2, .window_w = 3};
constexpr RotaryDesc rotary{.batch = 1, .seq = 1, .heads = 2, .head_dim = 4, .stride = 8};
constexpr CrossEntropyDesc cross_entropy{.rows = 1, .classes = 5, .stride = 5};

OptimizerDesc optimizer(std::vector<DecaySegment> segments) { return {.count = 10, .segments = std::move(segments)}; }

struct Row {
  std::string problem;
  std::string expected;  // empty: the descriptor is sound
};

TEST(DescriptorProblems, AreNamed) {
  const Row rows[] = {
      {problem(conv), ""},
      {problem(ConvDesc{.n = 1, .h = 1, .w = 1, .c = 1, .k = 1}), ""},
      // A window as large as the padded image fits once.
      {problem(ConvDesc{.n = 1, .h = 1, .w = 1, .c = 1, .k = 1, .r = 3, .s = 3, .padding = 1}), ""},
      {problem(with(conv, &ConvDesc::h, 0)), "h must be at least 1, not 0"},
      {problem(with(conv, &ConvDesc::stride, 0)), "stride must be at least 1, not 0"},
      {problem(with(conv, &ConvDesc::padding, -1)), "padding must be at least 0, not -1"},
      {problem(with(conv, &ConvDesc::groups, 0)), "groups must be at least 1, not 0"},
      {problem(with(conv, &ConvDesc::groups, 9)), "9 groups do not divide 12 input channels"},
      {problem(with(conv, &ConvDesc::groups, 4)), "4 groups do not divide 18 output channels"},
      {problem(with(conv, &ConvDesc::s, 9)), "a window of 3 x 9 does not fit an image of 8 x 6 with padding 1"},
      {problem(with(conv, &ConvDesc::gradient, DType::i32)), "i32 is not one of f64, f32, bf16, fp16"},

      {problem(attention), ""},
      {problem(with(attention, &AttentionDesc::seq, -1)), "seq must be at least 1, not -1"},
      {problem(with(attention, &AttentionDesc::kv_heads, 4)), "4 key and value heads do not divide 6 heads"},
      {problem(with(attention, &AttentionDesc::kv_heads, 12)), "12 key and value heads do not divide 6 heads"},
      {problem(with(attention, &AttentionDesc::q_stride, 47)), "q_stride must be at least 48 (6 heads of 8), not 47"},
      {problem(with(attention, &AttentionDesc::k_stride, 0)), "k_stride must be at least 16 (2 heads of 8), not 0"},
      {problem(with(attention, &AttentionDesc::v_stride, 15)), "v_stride must be at least 16 (2 heads of 8), not 15"},
      {problem(with(attention, &AttentionDesc::scale, -1)),
       "scale must be 0 (for 1 / sqrt(head_dim)) or above, not -1"},
      {problem(with(attention, &AttentionDesc::dtype, DType::s8)), "s8 is not one of f64, f32, bf16, fp16"},

      {problem(matmul), ""},
      {problem(gelu), ""},
      {problem(int8), ""},
      {problem(with(gelu, &MatmulDesc::accumulate, true)), "a product with an epilogue does not accumulate"},
      {problem(with(gelu, &MatmulDesc::epilogue, Epilogue::gelu_erf_gradient)),
       "a product with a gradient as its epilogue has no bias"},
      {problem(with(int8, &MatmulDesc::row_sums, true)),
       "an int8 product has no bias, epilogue, accumulation or row sums"},

      {problem(with(one_row, &BatchNormDesc::training, false)), ""},
      {problem(one_row), "batch norm in training needs at least 2 values per channel, not 1"},
      {problem(pool), ""},
      {problem(with(pool, &PoolDesc::padding, 2)), "padding must be at least 0 and below the window of 2 x 3, not 2"},
      {problem(with(pool, &PoolDesc::window_h, 5)), "a window of 5 x 3 does not fit an image of 4 x 4 with padding 0"},
      {problem(NormDesc{.rows = 3, .columns = 0}), "columns must be at least 1, not 0"},
      {problem(rotary), ""},
      {problem(with(rotary, &RotaryDesc::head_dim, 3)), "rotary embedding pairs elements: head_dim 3 is odd"},
      {problem(with(rotary, &RotaryDesc::stride, 7)), "stride must be at least 8 (2 heads of 4), not 7"},
      {problem(EmbeddingDesc{.batch = 1, .seq = 1, .vocabulary = 0, .width = 1}),
       "vocabulary must be at least 1, not 0"},
      {problem(cross_entropy), ""},
      {problem(with(cross_entropy, &CrossEntropyDesc::stride, 4)), "stride must be at least 5 classes, not 4"},
      {problem(with(cross_entropy, &CrossEntropyDesc::smoothing, 1)),
       "smoothing must be at least 0 and below 1, not 1"},
      {problem(with(cross_entropy, &CrossEntropyDesc::ignored, 4)), "the ignored target 4 is a class"},

      {problem(optimizer({{0, 4, 0.1}, {4, 10, 0}})), ""},
      {problem(optimizer({{0, 4, 0.1}, {5, 10, 0}})), "the decay segment [5, 10) does not follow element 4"},
      {problem(optimizer({{0, 4, 0.1}, {3, 10, 0}})), "the decay segment [3, 10) does not follow element 4"},
      {problem(optimizer({{0, 9, 0.1}})), "the decay segments cover 9 of 10 elements"},
  };
  for (const Row& row : rows) EXPECT_EQ(row.problem, row.expected);
}

// Its reason is the problem of the descriptor, or its own if it has no such op.
TEST(ReferenceBackend, RefusesWithTheReason) {
  const auto backend = make_reference_backend();
  const ConvDesc c = with(conv, &ConvDesc::groups, 9);
  EXPECT_EQ(backend->make<ConvForward>(c).reason(), problem(c));
  EXPECT_EQ(backend->make<ConvBackwardData>(c).reason(), problem(c));
  EXPECT_EQ(backend->make<ConvBackwardWeights>(c).reason(), problem(c));
  for (const AttentionDesc& a :
       {with(attention, &AttentionDesc::kv_heads, 4), with(attention, &AttentionDesc::dtype, DType::s8)}) {
    EXPECT_EQ(backend->make<AttentionForward>(a).reason(), problem(a));
    EXPECT_EQ(backend->make<AttentionBackward>(a).reason(), problem(a));
  }
  EXPECT_THAT(backend->make<BatchNormBackward>({.rows = 4, .channels = 1, .training = false}).reason(),
              HasSubstr("no backward pass in evaluation"));
}

}  // namespace
}  // namespace assay::ops
