// The CPU backend: oneDNN, a BLAS and our own kernels. No other folder includes oneDNN or a BLAS.
#include "workloads/ops/backend.h"

#include "workloads/ops/cpu/batch_norm.h"
#include "workloads/ops/cpu/blas_matmul.h"
#include "workloads/ops/cpu/conv.h"
#include "workloads/ops/cpu/dnnl_common.h"
#include "workloads/ops/cpu/dnnl_matmul.h"
#include "workloads/ops/cpu/language_ops.h"
#include "workloads/ops/cpu/pool.h"
#include "workloads/ops/cpu/vector_ops.h"

#include <fmt/format.h>

namespace assay::ops {

namespace {

class CpuBackend final : public Backend {
 public:
  std::string name() const override { return "cpu"; }
  std::string libraries() const override {
    return fmt::format("{}; {}", dnnl_version_text(), blas_ ? blas_->text() : "no BLAS");
  }

  Made<Matmul> make(const MatmulDesc& desc) override {
    if (auto problem = problem_of(desc)) return Made<Matmul>::no(*problem);
    if (desc.a != DType::f64 && desc.a != DType::f32 && desc.a != DType::bf16 && desc.a != DType::u8)
      return Made<Matmul>::no(fmt::format("no product of {} x {} on the CPU", name_of(desc.a), name_of(desc.b)));
    if (desc.a_stride || desc.b_stride || desc.out_stride)
      return Made<Matmul>::no("products on the CPU need contiguous rows");
    if (desc.a != DType::f64) return make_dnnl_matmul(desc);
    if (!blas_) return Made<Matmul>::no("f64 needs a BLAS: " + fmt::format("{}", fmt::join(tried_, "; ")));
    return make_blas_matmul(desc, *blas_);
  }

  Made<ConvForward> conv_forward(const ConvDesc& desc) override { return make_conv_forward(desc); }
  Made<ConvBackwardData> conv_backward_data(const ConvDesc& desc) override { return make_conv_backward_data(desc); }
  Made<ConvBackwardWeights> conv_backward_weights(const ConvDesc& desc) override {
    return make_conv_backward_weights(desc);
  }
  Made<BatchNormForward> batch_norm_forward(const BatchNormDesc& desc) override {
    return make_batch_norm_forward(desc);
  }
  Made<BatchNormBackward> batch_norm_backward(const BatchNormDesc& desc) override {
    return make_batch_norm_backward(desc);
  }
  Made<PoolForward> pool_forward(const PoolDesc& desc) override { return make_pool_forward(desc); }
  Made<PoolBackward> pool_backward(const PoolDesc& desc) override { return make_pool_backward(desc); }
  Made<NormForward> norm_forward(const NormDesc& desc) override { return make_norm_forward(desc); }
  Made<NormBackward> norm_backward(const NormDesc& desc) override { return make_norm_backward(desc); }
  Made<ActivationForward> activation_forward(const ActivationDesc& desc) override {
    return make_activation_forward(desc);
  }
  Made<ActivationBackward> activation_backward(const ActivationDesc& desc) override {
    return make_activation_backward(desc);
  }
  Made<EmbeddingForward> embedding_forward(const EmbeddingDesc& desc) override { return make_embedding_forward(desc); }
  Made<EmbeddingBackward> embedding_backward(const EmbeddingDesc& desc) override {
    return make_embedding_backward(desc);
  }
  Made<Optimizer> optimizer(const OptimizerDesc& desc) override { return make_optimizer(desc); }
  Made<GradientNorm> gradient_norm(const GradientNormDesc& desc) override { return make_gradient_norm(desc); }
  Made<Elementwise> elementwise(const ElementwiseDesc& desc) override { return make_elementwise(desc); }
  Made<AttentionForward> attention_forward(const AttentionDesc& desc) override { return make_attention_forward(desc); }
  Made<AttentionBackward> attention_backward(const AttentionDesc& desc) override {
    return make_attention_backward(desc);
  }
  Made<Rotary> rotary(const RotaryDesc& desc) override { return make_rotary(desc); }
  Made<CrossEntropy> cross_entropy(const CrossEntropyDesc& desc) override { return make_cross_entropy(desc); }

 private:
  std::vector<std::string> tried_;
  std::optional<BlasLibrary> blas_ = load_blas(tried_);
};

}  // namespace
}  // namespace assay::ops

extern "C" __attribute__((visibility("default"))) assay::ops::Backend* assay_make_cpu_backend(assay::Device*) {
  return new assay::ops::CpuBackend();
}
