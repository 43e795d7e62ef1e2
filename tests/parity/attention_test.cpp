// Attention against the oracle.
#include "tests/parity/frame.h"
#include "workloads/ops/descriptors.h"

namespace assay::ops::parity {
namespace {

struct Attention {
  std::string name;
  AttentionDesc desc;  // strides 0: dense
  bool fused = false;  // q, k and v are parts of one row
  std::vector<int> lengths = {};
};

// tf32 rounds both operands of a product to 11 significant bits; forward chains two products, backward three with a
// difference between. If a few keys have most of the weight, their values may cancel to a much smaller output.
Tolerance tolerance(OpGroup op, DType dtype, std::int64_t terms) {
  const DType stored = storage_type(dtype);
  Tolerance t = tolerance_of(op, stored, stored, terms, op == OpGroup::attention_forward ? 0.125 : 0);
  if (dtype == DType::tf32) {
    const double rounding = op == OpGroup::attention_forward ? 0x1p-10 : 0x1p-8;
    t.relative_l2 += rounding;
    t.element_relative += 2 * rounding;
    t.element_scale += 8 * rounding;
  }
  return t;
}

class AttentionParity : public Parity<Attention> {
 protected:
  AttentionDesc desc() const {
    AttentionDesc d = shape().desc;
    const std::int64_t q = d.heads * d.head_dim, kv = d.kv_heads * d.head_dim;
    d.q_stride = shape().fused ? q + 2 * kv : q;
    d.k_stride = d.v_stride = shape().fused ? q + 2 * kv : kv;
    d.lengths = !shape().lengths.empty();
    d.dtype = dtype();
    return d;
  }
};

// q, k and v, or their gradients: separate arrays, or one.
struct Operands {
  Operands(Side& side, const AttentionDesc& d, bool fused, bool inputs) : tokens(d.batch * d.seq) {
    const DType stored = storage_type(d.dtype);
    const auto make = [&](std::int64_t count, const char* purpose) {
      // Gradients start as zeros, so that the gaps between the heads of a wider row compare equal.
      return side.put(inputs ? Tensor::normal(stored, count, purpose) : Tensor(stored, count));
    };
    const auto bytes = static_cast<std::int64_t>(size_of(d.dtype));
    if (fused) {
      q = make(tokens * d.q_stride, "qkv");
      k = static_cast<std::byte*>(q) + d.heads * d.head_dim * bytes;
      v = static_cast<std::byte*>(k) + d.kv_heads * d.head_dim * bytes;
    } else {
      q = make(tokens * d.q_stride, "q");
      k = make(tokens * d.k_stride, "k");
      v = make(tokens * d.v_stride, "v");
    }
  }

  std::int64_t tokens;
  void *q, *k, *v;
};

Outputs forward(Side& side, AttentionForward& op, const Attention& shape, const AttentionDesc& d) {
  const Operands in(side, d, shape.fused, true);
  const std::int64_t count = in.tokens * d.heads * d.head_dim, rows = in.tokens * d.heads;
  const DType stored = storage_type(d.dtype);
  AttentionForward::Args args;
  args.q = in.q;
  args.k = in.k;
  args.v = in.v;
  if (d.lengths) args.lengths = static_cast<const std::int32_t*>(side.put(Tensor::integers(shape.lengths)));
  args.out = side.space(stored, count);
  args.log_sum_exp = side.space(statistic(d.dtype), rows);
  side.run(op, args);
  Tensor log_sum_exp = side.get(args.log_sum_exp, statistic(d.dtype), rows);
  // Values of masked queries are never read.
  for (std::int64_t i = 0; d.lengths && i < rows; ++i)
    if (i % d.seq >= shape.lengths[static_cast<std::size_t>(i / d.seq / d.heads)]) log_sum_exp.set(i, 0);
  return {{"out", side.get(args.out, stored, count), tolerance(OpGroup::attention_forward, d.dtype, d.seq)},
          {"log sum exp", log_sum_exp,
           tolerance(OpGroup::attention_forward, d.dtype == DType::tf32 ? d.dtype : statistic(d.dtype),
                     d.seq + d.head_dim)}};
}

TEST_P(AttentionParity, Forward) {
  expect_agreement(kind(), &Backend::make<AttentionForward>, desc(),
                   [&](Side& side, AttentionForward& op) { return forward(side, op, shape(), desc()); });
}

TEST_P(AttentionParity, Backward) {
  const AttentionDesc d = desc();
  const DType stored = storage_type(d.dtype);
  Side oracle = oracle_side();
  const Outputs saved = forward(oracle, *oracle.backend().make<AttentionForward>(d).take(), shape(), d);
  expect_agreement(kind(), &Backend::make<AttentionBackward>, d, [&](Side& side, AttentionBackward& op) {
    const Operands in(side, d, shape().fused, true), gradients(side, d, shape().fused, false);
    AttentionBackward::Args args;
    args.q = in.q;
    args.k = in.k;
    args.v = in.v;
    if (d.lengths) args.lengths = static_cast<const std::int32_t*>(side.put(Tensor::integers(shape().lengths)));
    args.out = side.put(saved[0].value);
    args.dout = side.put(Tensor::normal(stored, saved[0].value.count(), "dout"));
    args.log_sum_exp = side.put(saved[1].value);
    args.dq = gradients.q;
    args.dk = gradients.k;
    args.dv = gradients.v;
    side.run(op, args);
    const Tolerance limit = tolerance(OpGroup::attention_backward, d.dtype, d.seq + d.head_dim);
    if (shape().fused) return Outputs{{"dqkv", side.get(args.dq, stored, in.tokens * d.q_stride), limit}};
    return Outputs{{"dq", side.get(args.dq, stored, in.tokens * d.q_stride), limit},
                   {"dk", side.get(args.dk, stored, in.tokens * d.k_stride), limit},
                   {"dv", side.get(args.dv, stored, in.tokens * d.v_stride), limit}};
  });
}

const std::vector<Attention>& cases() {
  static const std::vector<Attention> all = {
      {"one", {.batch = 1, .seq = 1, .heads = 1, .kv_heads = 1, .head_dim = 1}},
      {"causal_2x64_4_heads", {.batch = 2, .seq = 64, .heads = 4, .kv_heads = 4, .head_dim = 32}},
      {"causal_fused_1x130_3_heads", {.batch = 1, .seq = 130, .heads = 3, .kv_heads = 3, .head_dim = 64}, true},
      {"causal_blocks_1x300_120_wide", {.batch = 1, .seq = 300, .heads = 2, .kv_heads = 1, .head_dim = 120}, true},
      {"one_token_2x1_grouped", {.batch = 2, .seq = 1, .heads = 4, .kv_heads = 2, .head_dim = 16}, true},
      {"causal_odd_3x37", {.batch = 3, .seq = 37, .heads = 2, .kv_heads = 1, .head_dim = 7}},
      {"grouped_fused_2x65_6_of_2", {.batch = 2, .seq = 65, .heads = 6, .kv_heads = 2, .head_dim = 16}, true},
      {"full_1x100", {.batch = 1, .seq = 100, .heads = 2, .kv_heads = 2, .head_dim = 40, .causal = false}},
      {"full_lengths_4x33",
       {.batch = 4, .seq = 33, .heads = 2, .kv_heads = 2, .head_dim = 16, .causal = false},
       true,
       {33, 20, 1, 0}},
      {"causal_lengths_2x70_scaled",
       {.batch = 2, .seq = 70, .heads = 2, .kv_heads = 1, .head_dim = 24, .scale = 0.3},
       false,
       {70, 41}}};
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, AttentionParity, on_every_device(cases()), name_of_case<Attention>);
// With a single key, gradients are zero except for rounding errors, and those of tf32 exceed any relative limit.
std::vector<Attention> cases_of_many_keys() {
  std::vector<Attention> many = cases();
  std::erase_if(many, [](const Attention& shape) { return shape.desc.seq == 1; });
  return many;
}
INSTANTIATE_TEST_SUITE_P(Tf32, AttentionParity,
                         testing::Combine(testing::Values(DeviceKind::cuda), testing::Values(DType::tf32),
                                          testing::ValuesIn(cases_of_many_keys())),
                         name_of_case<Attention>);
// Enough rows that a GPU processes a sequence's heads in several passes.
INSTANTIATE_TEST_SUITE_P(
    Turns, AttentionParity,
    testing::Combine(testing::Values(DeviceKind::cuda), testing::Values(DType::f32),
                     testing::Values(Attention{
                         "full_1x257_68_heads",
                         {.batch = 1, .seq = 257, .heads = 68, .kv_heads = 34, .head_dim = 2, .causal = false}})),
    name_of_case<Attention>);

}  // namespace
}  // namespace assay::ops::parity
