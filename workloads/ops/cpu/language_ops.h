// Ops of language models by our own kernels, in f32 and bf16.
#pragma once

#include "workloads/ops/attention.h"
#include "workloads/ops/cross_entropy.h"
#include "workloads/ops/rotary.h"

namespace assay::ops {

Made<Rotary> make_rotary(const RotaryDesc& desc);
Made<CrossEntropy> make_cross_entropy(const CrossEntropyDesc& desc);
Made<AttentionForward> make_attention_forward(const AttentionDesc& desc);
Made<AttentionBackward> make_attention_backward(const AttentionDesc& desc);

}  // namespace assay::ops
