// The scale of an 8-bit tensor from the largest magnitude that it is to hold.
#pragma once

#include "workloads/ops/functors/host_device.h"

#include <cmath>

namespace assay::ops::functors {

struct DelayedScale {
  // `most` is at least 0 and finite. A scale beyond a float's range is as good as none.
  ASSAY_HOST_DEVICE float operator()(float most, float largest, int margin) const {
    const float scale = most > 0.0f ? std::ldexp(largest / most, -margin) : 1.0f;
    return std::isfinite(scale) ? scale : 1.0f;
  }
  // What of a step's largest magnitude goes into the history.
  ASSAY_HOST_DEVICE static float remembered(float amax) { return std::isfinite(amax) ? amax : 0.0f; }
  // Whether it speaks of a tensor that is not finite.
  ASSAY_HOST_DEVICE static bool betrays(float amax) { return !std::isfinite(amax); }
};

}  // namespace assay::ops::functors
