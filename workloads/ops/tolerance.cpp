// The table of tolerances.
#include "workloads/ops/tolerance.h"

#include <cmath>

namespace assay::ops {

Tolerance matmul_tolerance(DType a, DType out, std::int64_t k) {
  if (a == DType::u8 || a == DType::s8) return {};
  // Unit roundoff of the accumulator; measured errors of blocked kernels stay below a fifth of these limits.
  const double accumulate = (a == DType::f64 ? 0x1p-53 : 0x1p-24) * (4.0 + std::sqrt(static_cast<double>(k)));
  Tolerance t{accumulate, accumulate, 8.0 * accumulate};
  if (out == DType::bf16) {
    // Half an ulp of 8 significant bits an element; over a vector the mean square is well below.
    t.relative_l2 += 0x1p-9;
    t.element_relative += 0x1p-8;
  }
  return t;
}

}  // namespace assay::ops
