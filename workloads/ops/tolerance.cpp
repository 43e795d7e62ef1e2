// The table of tolerances.
#include "workloads/ops/tolerance.h"

#include <array>
#include <cmath>
#include <cstddef>

namespace assay::ops {

namespace {

struct Row {
  OpGroup op;
  double units;           // of roundoff, beside those of its sums: elementary functions and cancellation
  double bf16_roundings;  // that an op on bf16 may make on the way to its output, as of attention's probabilities
};

// Measured errors of the CPU's kernels stay below a third of these limits.
constexpr std::array<Row, 16> rows{{{OpGroup::matmul, 4, 0},
                                    {OpGroup::conv, 4, 0},
                                    {OpGroup::batch_norm_forward, 8, 0},
                                    {OpGroup::batch_norm_backward, 16, 1},
                                    {OpGroup::pool, 4, 0},
                                    {OpGroup::norm_forward, 8, 0},
                                    {OpGroup::norm_backward, 16, 0},
                                    {OpGroup::attention_forward, 16, 1},
                                    {OpGroup::attention_backward, 32, 3},
                                    {OpGroup::rotary, 4, 0},
                                    {OpGroup::activation, 16, 0},
                                    {OpGroup::embedding, 4, 0},
                                    {OpGroup::cross_entropy, 16, 0},
                                    {OpGroup::optimizer, 16, 0},
                                    {OpGroup::gradient_norm, 16, 0},
                                    {OpGroup::elementwise, 2, 0}}};

}  // namespace

Tolerance tolerance_of(OpGroup op, DType compute, DType out, std::int64_t terms, double cancelled) {
  const Row& row = rows[static_cast<std::size_t>(op)];
  // Unit roundoff of the accumulator.
  const double unit = compute == DType::f64 ? 0x1p-53 : 0x1p-24;
  const double accumulate = unit * (row.units + std::sqrt(static_cast<double>(terms)));
  Tolerance t{accumulate, accumulate, 8.0 * accumulate, accumulate * cancelled};
  // Half an ulp of 8 significant bits an element; over a vector the mean square is well below.
  if (compute == DType::bf16) {
    t.relative_l2 += row.bf16_roundings * 0x1p-9;
    t.element_relative += row.bf16_roundings * 0x1p-8;
    t.element_scale += row.bf16_roundings * 0x1p-7;
    t.absolute += row.bf16_roundings * 0x1p-9 * cancelled;
  }
  if (out == DType::bf16) {
    t.relative_l2 += 0x1p-9;
    t.element_relative += 0x1p-8;
  }
  return t;
}

Tolerance matmul_tolerance(DType a, DType out, std::int64_t k) {
  if (a == DType::u8 || a == DType::s8) return {};
  return tolerance_of(OpGroup::matmul, a, out, k);
}

}  // namespace assay::ops
