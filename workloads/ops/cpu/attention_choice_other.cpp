// Processors other than x86 compute attention in f32.
#include "workloads/ops/cpu/attention_choice.h"

namespace assay::ops {

const AttentionKernels::Type* attention_pair_kernels() { return nullptr; }

}  // namespace assay::ops
