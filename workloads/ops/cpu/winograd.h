// 3 x 3 convolutions in f32 by Winograd's F(2x2, 3x3): 2.25 times fewer products than the direct method, with errors of
// the same size.
#pragma once

#include "workloads/ops/winograd.h"

namespace assay::ops {

// Takes descriptors that suit. `plain` is oneDNN's op, which is only timed: choice() tells how much longer it takes.
std::unique_ptr<ConvForward> make_winograd_forward(const ConvDesc& desc, Made<ConvForward> plain);
std::unique_ptr<ConvBackwardData> make_winograd_backward_data(const ConvDesc& desc, Made<ConvBackwardData> plain);
std::unique_ptr<ConvBackwardWeights> make_winograd_backward_weights(const ConvDesc& desc,
                                                                    Made<ConvBackwardWeights> plain);

}  // namespace assay::ops
