// Processors other than x86 compute attention in f32, and have no tiles.
#include "workloads/ops/cpu/special_kernels.h"

namespace assay::ops {

const AttentionKernels::Type* attention_pair_kernels() { return nullptr; }
const TileKernels* tile_kernels() { return nullptr; }

}  // namespace assay::ops
