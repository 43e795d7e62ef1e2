// A convolution's weight gradient as a product of packed panels, for any window and stride.
#pragma once

#include "workloads/ops/conv.h"

namespace assay::ops {

bool packed_gradient_supports(const ConvDesc& desc);
// Whether it is faster than oneDNN's, by a fixed rule.
bool packed_gradient_suits(const ConvDesc& desc);
// Takes only descriptors that it supports.
std::unique_ptr<ConvBackwardWeights> make_packed_gradient(const ConvDesc& desc);

}  // namespace assay::ops
