// How far an op may lie from the oracle: one table by op and dtype.
#pragma once

#include "harness/core/dtype.h"

#include <cstdint>

namespace assay::ops {

struct Tolerance {
  double relative_l2 = 0;       // |got - want| / |want|, both as vectors
  double element_relative = 0;  // an element may miss by element_relative * |want| + element_scale * rms(want)
  double element_scale = 0;
};

// Of a matrix product whose sums have k terms, rounded once to `out`. Rounding errors of a sum of k random terms grow
// with sqrt(k) (Higham & Mary 2019, probabilistic error analysis); int8 products are exact: all zero.
Tolerance matmul_tolerance(DType a, DType out, std::int64_t k);

}  // namespace assay::ops
