// How far an op may deviate from the oracle, by op and dtype.
#pragma once

#include "harness/core/dtype.h"

#include <cstdint>

namespace assay::ops {

struct Tolerance {
  double relative_l2 = 0;       // |got - want| / |want|, both as vectors
  double element_relative = 0;  // an element may be off by element_relative * |want| + element_scale * rms(want)
  double element_scale = 0;
  // Error left by terms that cancel, as a root mean square over the tensor: added to the limits. An element may be off
  // by 8 times that.
  double absolute = 0;
};

// The rows of the table.
enum class OpGroup {
  matmul,
  conv,
  batch_norm_forward,
  batch_norm_backward,
  pool,
  norm_forward,
  norm_backward,
  attention_forward,
  attention_backward,
  rotary,
  activation,
  embedding,
  cross_entropy,
  optimizer,
  gradient_norm,
  elementwise,
};

// For an op that computes on `compute`, and an output stored as `out` whose longest sums have `terms` terms. Rounding
// errors of a sum of k random terms grow with sqrt(k) (Higham & Mary 2019, probabilistic error analysis). `cancelled`
// is the root mean square of terms that may cancel to a much smaller output.
Tolerance tolerance_of(OpGroup op, DType compute, DType out, std::int64_t terms, double cancelled = 0);

// For a matrix product whose sums have k terms, rounded once to `out`; int8 products are exact: all zero.
Tolerance matmul_tolerance(DType a, DType out, std::int64_t k, bool fast_accumulate = false);

}  // namespace assay::ops
