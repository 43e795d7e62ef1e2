// Makers of the reference ops, one source per op group.
#pragma once

#include "workloads/ops/backend.h"

namespace assay::ops::reference {

Made<Matmul> make_matmul(const MatmulDesc& desc);
Made<ConvForward> make_conv_forward(const ConvDesc& desc);
Made<ConvBackwardData> make_conv_backward_data(const ConvDesc& desc);
Made<ConvBackwardWeights> make_conv_backward_weights(const ConvDesc& desc);
Made<BatchNormForward> make_batch_norm_forward(const BatchNormDesc& desc);
Made<BatchNormBackward> make_batch_norm_backward(const BatchNormDesc& desc);
Made<PoolForward> make_pool_forward(const PoolDesc& desc);
Made<PoolBackward> make_pool_backward(const PoolDesc& desc);
Made<NormForward> make_norm_forward(const NormDesc& desc);
Made<NormBackward> make_norm_backward(const NormDesc& desc);
Made<AttentionForward> make_attention_forward(const AttentionDesc& desc);
Made<AttentionBackward> make_attention_backward(const AttentionDesc& desc);
Made<Rotary> make_rotary(const RotaryDesc& desc);
Made<ActivationForward> make_activation_forward(const ActivationDesc& desc);
Made<ActivationBackward> make_activation_backward(const ActivationDesc& desc);
Made<EmbeddingForward> make_embedding_forward(const EmbeddingDesc& desc);
Made<EmbeddingBackward> make_embedding_backward(const EmbeddingDesc& desc);
Made<CrossEntropy> make_cross_entropy(const CrossEntropyDesc& desc);
Made<Optimizer> make_optimizer(const OptimizerDesc& desc);
Made<GradientNorm> make_gradient_norm(const GradientNormDesc& desc);
Made<Elementwise> make_elementwise(const ElementwiseDesc& desc);
Made<Quantize> make_quantize(const QuantizeDesc& desc);
Made<ScaleUpdate> make_scale_update(const ScaleUpdateDesc& desc);

}  // namespace assay::ops::reference
