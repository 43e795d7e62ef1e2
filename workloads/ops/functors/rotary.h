// One pair of rotary position embedding, in float or double.
#pragma once

#include "workloads/ops/functors/math.h"

namespace assay::ops::functors {

// (x, y) rotated by an angle; pass -sine to rotate back.
struct Rotate {
  template <typename T>
  ASSAY_HOST_DEVICE void operator()(T& x, T& y, T cosine, T sine) const {
    const T rotated = fma(x, cosine, -(y * sine));
    y = fma(y, cosine, x * sine);
    x = rotated;
  }
};

}  // namespace assay::ops::functors
