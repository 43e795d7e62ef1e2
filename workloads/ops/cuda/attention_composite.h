// Attention as matrix products and our own softmax: works on every GPU, is the reference for cuDNN's kernels, and runs
// if those do not support a shape.
#pragma once

#include "workloads/ops/attention.h"

#include <string>

namespace assay::ops {

// Works sequence by sequence, in blocks of queries that keep about 32 MiB of scores. f64, f32, tf32 (stored as f32),
// bf16 and fp16; sums in f32. isa() returns `architecture`; `why` says why nothing faster was chosen.
Made<AttentionForward> make_composite_attention_forward(const AttentionDesc& desc, const std::string& architecture,
                                                        const std::string& why);
Made<AttentionBackward> make_composite_attention_backward(const AttentionDesc& desc, const std::string& architecture,
                                                          const std::string& why);

}  // namespace assay::ops
