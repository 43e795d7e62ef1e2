// A convolution's weight gradient as a product of packed panels, for any window and stride.
#pragma once

#include "workloads/ops/conv.h"

namespace assay::ops {

// Whether the op supports the descriptor and is faster than oneDNN's, by a fixed rule.
bool packed_gradient_suits(const ConvDesc& desc);
std::unique_ptr<ConvBackwardWeights> make_packed_gradient(const ConvDesc& desc);  // if it suits

}  // namespace assay::ops
