// Convolutions by oneDNN, in f32 and bf16.
#pragma once

#include "workloads/ops/conv.h"

namespace assay::ops {

Made<ConvForward> make_dnnl_conv_forward(const ConvDesc& desc);
Made<ConvBackwardData> make_dnnl_conv_backward_data(const ConvDesc& desc);
Made<ConvBackwardWeights> make_dnnl_conv_backward_weights(const ConvDesc& desc);

}  // namespace assay::ops
