// Ops by our own vectorised kernels, in f32 and bf16.
#pragma once

#include "workloads/ops/activation.h"
#include "workloads/ops/elementwise.h"
#include "workloads/ops/embedding.h"
#include "workloads/ops/norm.h"
#include "workloads/ops/optimizer.h"

namespace assay::ops {

Made<NormForward> make_norm_forward(const NormDesc& desc);
Made<NormBackward> make_norm_backward(const NormDesc& desc);
Made<ActivationForward> make_activation_forward(const ActivationDesc& desc);
Made<ActivationBackward> make_activation_backward(const ActivationDesc& desc);
Made<EmbeddingForward> make_embedding_forward(const EmbeddingDesc& desc);
Made<EmbeddingBackward> make_embedding_backward(const EmbeddingDesc& desc);
Made<Elementwise> make_elementwise(const ElementwiseDesc& desc);
Made<Optimizer> make_optimizer(const OptimizerDesc& desc);
Made<GradientNorm> make_gradient_norm(const GradientNormDesc& desc);

}  // namespace assay::ops
