// The two ways to compute attention on a GPU.
#pragma once

#include "workloads/ops/attention.h"

#include <string>

namespace assay::ops {

// Attention as matrix products and our own softmax: works on every GPU, is the reference for cuDNN's kernels, and runs
// if those do not support a shape.

// Works sequence by sequence, in blocks of queries that keep about 32 MiB of scores. f64, f32, tf32 (stored as f32),
// bf16 and fp16; sums in f32. isa() returns `architecture`; `why` says why nothing faster was chosen.
Made<AttentionForward> make_composite_attention_forward(const AttentionDesc& desc, const std::string& architecture,
                                                        const std::string& why);
Made<AttentionBackward> make_composite_attention_backward(const AttentionDesc& desc, const std::string& architecture,
                                                          const std::string& why);

// Attention by cuDNN's fused kernels.

// bf16 and fp16, heads of up to 256 elements (a multiple of 8), by the fastest of cuDNN's plans in a trial. A backward
// pass may sum dq in any order, PyTorch's default; its bits then do not repeat. Otherwise the reason why not.
Made<AttentionForward> make_cudnn_attention_forward(Device& device, const AttentionDesc& desc,
                                                    const std::string& architecture);
Made<AttentionBackward> make_cudnn_attention_backward(Device& device, const AttentionDesc& desc,
                                                      const std::string& architecture);

}  // namespace assay::ops
