// Chooses the attention kernels for bf16 by processor.
#pragma once

#include "workloads/ops/cpu/kernels/attention_kernels.h"

namespace assay::ops {

// Kernels that multiply pairs of bf16, if this processor supports them and they beat its f32; else null.
const AttentionKernels::Type* attention_pair_kernels();

}  // namespace assay::ops
