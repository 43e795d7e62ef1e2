// Ops that the CUDA backend does not make yet. Who writes one deletes its line here.
#include "workloads/ops/cuda/cuda_ops.h"

namespace assay::ops {

#define ASSAY_UNMADE(Op, make, Desc) \
  Made<Op> make(Device&, const Desc&) { return Made<Op>::no("the cuda backend does not make this op yet"); }

ASSAY_UNMADE(ConvForward, make_cuda_conv_forward, ConvDesc)
ASSAY_UNMADE(ConvBackwardData, make_cuda_conv_backward_data, ConvDesc)
ASSAY_UNMADE(ConvBackwardWeights, make_cuda_conv_backward_weights, ConvDesc)
ASSAY_UNMADE(BatchNormForward, make_cuda_batch_norm_forward, BatchNormDesc)
ASSAY_UNMADE(BatchNormBackward, make_cuda_batch_norm_backward, BatchNormDesc)
ASSAY_UNMADE(PoolForward, make_cuda_pool_forward, PoolDesc)
ASSAY_UNMADE(PoolBackward, make_cuda_pool_backward, PoolDesc)
ASSAY_UNMADE(AttentionForward, make_cuda_attention_forward, AttentionDesc)
ASSAY_UNMADE(AttentionBackward, make_cuda_attention_backward, AttentionDesc)
ASSAY_UNMADE(GradientNorm, make_cuda_gradient_norm, GradientNormDesc)
ASSAY_UNMADE(Elementwise, make_cuda_elementwise, ElementwiseDesc)

}  // namespace assay::ops
