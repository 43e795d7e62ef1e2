// The CUDA backend's factories: each source makes one op or one pair of ops.
#pragma once

#include "workloads/ops/backend.h"

namespace assay::ops {

Made<Matmul> make_cuda_matmul(Device& device, const MatmulDesc& desc);
Made<ConvForward> make_cuda_conv_forward(Device& device, const ConvDesc& desc);
Made<ConvBackwardData> make_cuda_conv_backward_data(Device& device, const ConvDesc& desc);
Made<ConvBackwardWeights> make_cuda_conv_backward_weights(Device& device, const ConvDesc& desc);
Made<BatchNormForward> make_cuda_batch_norm_forward(Device& device, const BatchNormDesc& desc);
Made<BatchNormBackward> make_cuda_batch_norm_backward(Device& device, const BatchNormDesc& desc);
Made<PoolForward> make_cuda_pool_forward(Device& device, const PoolDesc& desc);
Made<PoolBackward> make_cuda_pool_backward(Device& device, const PoolDesc& desc);
Made<NormForward> make_cuda_norm_forward(Device& device, const NormDesc& desc);
Made<NormBackward> make_cuda_norm_backward(Device& device, const NormDesc& desc);
Made<AttentionForward> make_cuda_attention_forward(Device& device, const AttentionDesc& desc);
Made<AttentionBackward> make_cuda_attention_backward(Device& device, const AttentionDesc& desc);
Made<Rotary> make_cuda_rotary(Device& device, const RotaryDesc& desc);
Made<ActivationForward> make_cuda_activation_forward(Device& device, const ActivationDesc& desc);
Made<ActivationBackward> make_cuda_activation_backward(Device& device, const ActivationDesc& desc);
Made<EmbeddingForward> make_cuda_embedding_forward(Device& device, const EmbeddingDesc& desc);
Made<EmbeddingBackward> make_cuda_embedding_backward(Device& device, const EmbeddingDesc& desc);
Made<CrossEntropy> make_cuda_cross_entropy(Device& device, const CrossEntropyDesc& desc);
Made<Optimizer> make_cuda_optimizer(Device& device, const OptimizerDesc& desc);
Made<GradientNorm> make_cuda_gradient_norm(Device& device, const GradientNormDesc& desc);
Made<Elementwise> make_cuda_elementwise(Device& device, const ElementwiseDesc& desc);
Made<Quantize> make_cuda_quantize(Device& device, const QuantizeDesc& desc);
Made<ScaleUpdate> make_cuda_scale_update(Device& device, const ScaleUpdateDesc& desc);

}  // namespace assay::ops
