// Kernels that only some processors have, beside those compiled for every instruction set.
#pragma once

#include "workloads/ops/cpu/kernels/attention_kernels.h"
#include "workloads/ops/cpu/kernels/tile_kernels.h"

namespace assay::ops {

// Attention kernels that multiply pairs of bf16, if this processor supports them and they beat its f32; else null.
const AttentionKernels::Type* attention_pair_kernels();

// Null if this processor has no tiles of bf16, or ASSAY_ISA names a weaker instruction set.
const TileKernels* tile_kernels();

}  // namespace assay::ops
