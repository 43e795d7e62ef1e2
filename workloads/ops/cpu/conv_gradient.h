// A convolution's weight gradient as a product of packed panels, for any window and stride.
#pragma once

#include "workloads/ops/conv.h"

namespace assay::ops {

// True where the op exists and is faster than oneDNN's: a fixed rule.
bool own_gradient_suits(const ConvDesc& desc);
// For descriptors that suit.
std::unique_ptr<ConvBackwardWeights> make_own_conv_backward_weights(const ConvDesc& desc);

}  // namespace assay::ops
