// Attention of products and an own softmax: what every GPU has, what cuDNN's kernels are compared with, and what runs
// where those say no.
#pragma once

#include "workloads/ops/attention.h"

#include <string>

namespace assay::ops {

// Sequence by sequence, in blocks of queries, so that about 32 MiB of scores are held. f64, f32, tf32 (f32 as
// stored), bf16 and fp16; sums in f32. `architecture` is what isa() says, `why` why nothing faster was chosen.
Made<AttentionForward> make_composite_attention_forward(const AttentionDesc& desc, const std::string& architecture,
                                                        const std::string& why);
Made<AttentionBackward> make_composite_attention_backward(const AttentionDesc& desc, const std::string& architecture,
                                                          const std::string& why);

}  // namespace assay::ops
