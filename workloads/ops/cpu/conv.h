// Chooses the implementation of a convolution by a fixed rule, so that equal descriptors give equal bits.
#pragma once

#include "workloads/ops/conv.h"

namespace assay::ops {

Made<ConvForward> make_conv_forward(const ConvDesc& desc);
Made<ConvBackwardData> make_conv_backward_data(const ConvDesc& desc);
Made<ConvBackwardWeights> make_conv_backward_weights(const ConvDesc& desc);

}  // namespace assay::ops
