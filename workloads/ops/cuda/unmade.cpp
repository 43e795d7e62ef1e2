// Ops that the CUDA backend does not make yet. Who writes one deletes its line here.
#include "workloads/ops/cuda/cuda_ops.h"

namespace assay::ops {

#define ASSAY_UNMADE(Op, make, Desc) \
  Made<Op> make(Device&, const Desc&) { return Made<Op>::no("the cuda backend does not make this op yet"); }

ASSAY_UNMADE(GradientNorm, make_cuda_gradient_norm, GradientNormDesc)
ASSAY_UNMADE(Elementwise, make_cuda_elementwise, ElementwiseDesc)

}  // namespace assay::ops
