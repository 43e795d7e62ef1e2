// Which kernels attention runs by type and processor.
#pragma once

#include "workloads/ops/cpu/kernels/attention_kernels.h"

namespace assay::ops {

// Kernels that multiply pairs of bf16, where this processor has them and they beat its f32; else null.
const AttentionKernels::Type* attention_pair_kernels();

}  // namespace assay::ops
