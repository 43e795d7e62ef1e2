// Attention by cuDNN's fused kernels.
#pragma once

#include "workloads/ops/attention.h"

#include <string>

namespace assay::ops {

// bf16 and fp16, heads of up to 256 elements (a multiple of 8), by the fastest of cuDNN's plans in a trial. A backward
// pass may sum dq in any order, PyTorch's default; its bits then do not repeat. Otherwise the reason why not.
Made<AttentionForward> make_cudnn_attention_forward(Device& device, const AttentionDesc& desc,
                                                    const std::string& architecture);
Made<AttentionBackward> make_cudnn_attention_backward(Device& device, const AttentionDesc& desc,
                                                      const std::string& architecture);

}  // namespace assay::ops
