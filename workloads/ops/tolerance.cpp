// The table of tolerances.
#include "workloads/ops/tolerance.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace assay::ops {

namespace {

struct Row {
  OpGroup op;
  double units;      // of roundoff, besides those of its sums: elementary functions and cancellation
  double roundings;  // of intermediate results to 16 bits, such as attention's probabilities
};

// Measured errors of the CPU's kernels stay below a third of these limits. They hold whether a * b + c is rounded twice
// or, fused, once: in either form a sum of n products is off by at most n u of its terms' magnitudes, u being the unit
// roundoff (Higham, "Accuracy and Stability of Numerical Algorithms", section 3.1), of which the limits take the root of
// n, as roundings are independent. The emulation stays below 0.27 of them in f32, compiled with ASSAY_EMULATION_FMA,
// as nvcc fuses, or without.
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

// Half an ulp of a 16-bit type, whose rounding outweighs all other errors (0 for wider types); the root mean square
// over a vector is well below.
double half_ulp_of(DType dtype) { return dtype == DType::bf16 ? 0x1p-9 : dtype == DType::fp16 ? 0x1p-12 : 0; }

}  // namespace

Tolerance tolerance_of(OpGroup op, DType compute, DType out, std::int64_t terms, double cancelled) {
  const Row& row = rows[static_cast<std::size_t>(op)];
  // Unit roundoff of the accumulator.
  const double unit = compute == DType::f64 ? 0x1p-53 : 0x1p-24;
  const double accumulate = unit * (row.units + std::sqrt(static_cast<double>(terms)));
  Tolerance t{accumulate, accumulate, 8.0 * accumulate, accumulate * cancelled};
  const double half_ulp = half_ulp_of(compute);
  t.relative_l2 += row.roundings * half_ulp;
  t.element_relative += row.roundings * 2 * half_ulp;
  t.element_scale += row.roundings * 4 * half_ulp;
  t.absolute += row.roundings * half_ulp * cancelled;
  t.relative_l2 += half_ulp_of(out);
  t.element_relative += 2 * half_ulp_of(out);
  return t;
}

Tolerance matmul_tolerance(DType a, DType out, std::int64_t k, bool fast_accumulate) {
  if (a == DType::u8 || a == DType::s8) return {};
  Tolerance t = tolerance_of(OpGroup::matmul, a, out, k);
  // Both operands are rounded to 11 significant bits, with independent errors.
  double extra = a == DType::tf32 ? 0x1p-11 : 0;
  // Tensor cores of compute capability 8.9 and 9.0 keep about 14 bits of a sum of fp8 products, over 128 terms, or over
  // all terms with fast accumulation (DeepSeek-V3 technical report, section 3.3.2: up to 2 %). Each step truncates
  // rather than rounds, so the loss grows with the number of terms.
  const double fast = std::max(0x1p-6, 0x1p-19 * static_cast<double>(k));
  if (a == DType::fp8_e4m3 || a == DType::fp8_e5m2) extra = fast_accumulate ? fast : 0x1p-9;
  t.relative_l2 += extra;
  t.element_scale += 8 * extra;
  return t;
}

}  // namespace assay::ops
