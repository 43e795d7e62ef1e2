// The scale of an 8-bit tensor, from the largest magnitude it must represent.
#pragma once

#include "workloads/ops/functors/host_device.h"

#include <cmath>

namespace assay::ops::functors {

struct DelayedScale {
  // `amax`, the history's maximum, is at least 0 and finite; `largest` is the type's. 1 if the scale would overflow.
  ASSAY_HOST_DEVICE float operator()(float amax, float largest, int margin) const {
    const float scale = amax > 0.0f ? std::ldexp(largest / amax, -margin) : 1.0f;
    return std::isfinite(scale) ? scale : 1.0f;
  }
  // A step's amax as it enters the history.
  ASSAY_HOST_DEVICE static float history_entry(float amax) { return std::isfinite(amax) ? amax : 0.0f; }
  // Whether the tensor had an element that is not finite.
  ASSAY_HOST_DEVICE static bool overflowed(float amax) { return !std::isfinite(amax); }
};

}  // namespace assay::ops::functors
