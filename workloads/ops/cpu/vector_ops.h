// Ops by own vectorised kernels, in f32 and bf16; `isa` is the strongest instruction set they may use.
#pragma once

#include "harness/device/cpu/kernels.h"
#include "workloads/ops/activation.h"
#include "workloads/ops/elementwise.h"
#include "workloads/ops/embedding.h"
#include "workloads/ops/norm.h"
#include "workloads/ops/optimizer.h"

namespace assay::ops {

Made<NormForward> make_norm_forward(const NormDesc& desc, cpu::Isa isa);
Made<NormBackward> make_norm_backward(const NormDesc& desc, cpu::Isa isa);
Made<ActivationForward> make_activation_forward(const ActivationDesc& desc, cpu::Isa isa);
Made<ActivationBackward> make_activation_backward(const ActivationDesc& desc, cpu::Isa isa);
Made<EmbeddingForward> make_embedding_forward(const EmbeddingDesc& desc, cpu::Isa isa);
Made<EmbeddingBackward> make_embedding_backward(const EmbeddingDesc& desc, cpu::Isa isa);
Made<Elementwise> make_elementwise(const ElementwiseDesc& desc, cpu::Isa isa);
Made<Optimizer> make_optimizer(const OptimizerDesc& desc, cpu::Isa isa);
Made<GradientNorm> make_gradient_norm(const GradientNormDesc& desc, cpu::Isa isa);

}  // namespace assay::ops
