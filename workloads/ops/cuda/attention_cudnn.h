// Attention by cuDNN's fused kernels.
#pragma once

#include "workloads/ops/attention.h"

#include <string>

namespace assay::ops {

// bf16 and fp16, heads of up to 256 elements (a multiple of 8). Of cuDNN's plans the fastest by trial; a backward pass
// may be one that sums dq in any order, as PyTorch's is by default: then it does not repeat its bits. The reason names
// what stands against it.
Made<AttentionForward> make_cudnn_attention_forward(Device& device, const AttentionDesc& desc,
                                                    const std::string& architecture);
Made<AttentionBackward> make_cudnn_attention_backward(Device& device, const AttentionDesc& desc,
                                                      const std::string& architecture);

}  // namespace assay::ops
