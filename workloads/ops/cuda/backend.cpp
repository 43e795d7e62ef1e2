// The backend of NVIDIA GPUs: maps each op to its factory.
#include "workloads/ops/backend.h"

#include "workloads/ops/cuda/blaslt.h"
#include "workloads/ops/cuda/cuda_ops.h"
#include "workloads/ops/cuda/cudnn/plan.h"

#include <fmt/format.h>

#include <memory>
#include <string>

namespace assay::ops {

namespace {

// Calls the factory if the descriptor is valid, else returns Made::no with problem_of()'s reason; descriptors without
// rules have no problem_of().
template <typename Op, typename Desc>
Made<Op> made(Made<Op> (*maker)(Device&, const Desc&), Device& device, const Desc& desc) {
  if constexpr (requires { problem_of(desc); })
    if (auto problem = problem_of(desc)) return Made<Op>::no(*problem);
  return maker(device, desc);
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(Device& device) : device_(device) {}
  std::string name() const override { return "cuda"; }
  std::string libraries() const override {
    return fmt::format("{}; {}; {}", device_.info().software, blaslt_version_text(), cudnn::version());
  }

  Made<Matmul> make(const MatmulDesc& d) override { return made(make_cuda_matmul, device_, d); }
  Made<ConvForward> conv_forward(const ConvDesc& d) override { return made(make_cuda_conv_forward, device_, d); }
  Made<ConvBackwardData> conv_backward_data(const ConvDesc& d) override {
    return made(make_cuda_conv_backward_data, device_, d);
  }
  Made<ConvBackwardWeights> conv_backward_weights(const ConvDesc& d) override {
    return made(make_cuda_conv_backward_weights, device_, d);
  }
  Made<BatchNormForward> batch_norm_forward(const BatchNormDesc& d) override {
    return made(make_cuda_batch_norm_forward, device_, d);
  }
  Made<BatchNormBackward> batch_norm_backward(const BatchNormDesc& d) override {
    return made(make_cuda_batch_norm_backward, device_, d);
  }
  Made<PoolForward> pool_forward(const PoolDesc& d) override { return made(make_cuda_pool_forward, device_, d); }
  Made<PoolBackward> pool_backward(const PoolDesc& d) override { return made(make_cuda_pool_backward, device_, d); }
  Made<NormForward> norm_forward(const NormDesc& d) override { return made(make_cuda_norm_forward, device_, d); }
  Made<NormBackward> norm_backward(const NormDesc& d) override { return made(make_cuda_norm_backward, device_, d); }
  Made<AttentionForward> attention_forward(const AttentionDesc& d) override {
    return made(make_cuda_attention_forward, device_, d);
  }
  Made<AttentionBackward> attention_backward(const AttentionDesc& d) override {
    return made(make_cuda_attention_backward, device_, d);
  }
  Made<Rotary> rotary(const RotaryDesc& d) override { return made(make_cuda_rotary, device_, d); }
  Made<ActivationForward> activation_forward(const ActivationDesc& d) override {
    return made(make_cuda_activation_forward, device_, d);
  }
  Made<ActivationBackward> activation_backward(const ActivationDesc& d) override {
    return made(make_cuda_activation_backward, device_, d);
  }
  Made<EmbeddingForward> embedding_forward(const EmbeddingDesc& d) override {
    return made(make_cuda_embedding_forward, device_, d);
  }
  Made<EmbeddingBackward> embedding_backward(const EmbeddingDesc& d) override {
    return made(make_cuda_embedding_backward, device_, d);
  }
  Made<CrossEntropy> cross_entropy(const CrossEntropyDesc& d) override {
    return made(make_cuda_cross_entropy, device_, d);
  }
  Made<Optimizer> optimizer(const OptimizerDesc& d) override { return made(make_cuda_optimizer, device_, d); }
  Made<GradientNorm> gradient_norm(const GradientNormDesc& d) override {
    return made(make_cuda_gradient_norm, device_, d);
  }
  Made<Elementwise> elementwise(const ElementwiseDesc& d) override { return made(make_cuda_elementwise, device_, d); }
  Made<Quantize> quantize(const QuantizeDesc& d) override { return made(make_cuda_quantize, device_, d); }
  Made<ScaleUpdate> scale_update(const ScaleUpdateDesc& d) override { return made(make_cuda_scale_update, device_, d); }

 private:
  Device& device_;
};

}  // namespace

}  // namespace assay::ops

extern "C" assay::ops::Backend* assay_make_cuda_backend(assay::Device* device) {
  return std::make_unique<assay::ops::CudaBackend>(*device).release();
}
