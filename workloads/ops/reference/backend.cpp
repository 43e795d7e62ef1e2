// The reference backend: the oracle against which every device is tested.
#include "workloads/ops/reference/reference.h"

namespace assay::ops {

namespace {

class ReferenceBackend final : public Backend {
 public:
  std::string name() const override { return "reference"; }
  std::string libraries() const override { return "none"; }

  Made<Matmul> make(const MatmulDesc& d) override { return reference::make_matmul(d); }
  Made<ConvForward> conv_forward(const ConvDesc& d) override { return reference::make_conv_forward(d); }
  Made<ConvBackwardData> conv_backward_data(const ConvDesc& d) override {
    return reference::make_conv_backward_data(d);
  }
  Made<ConvBackwardWeights> conv_backward_weights(const ConvDesc& d) override {
    return reference::make_conv_backward_weights(d);
  }
  Made<BatchNormForward> batch_norm_forward(const BatchNormDesc& d) override {
    return reference::make_batch_norm_forward(d);
  }
  Made<BatchNormBackward> batch_norm_backward(const BatchNormDesc& d) override {
    return reference::make_batch_norm_backward(d);
  }
  Made<PoolForward> pool_forward(const PoolDesc& d) override { return reference::make_pool_forward(d); }
  Made<PoolBackward> pool_backward(const PoolDesc& d) override { return reference::make_pool_backward(d); }
  Made<NormForward> norm_forward(const NormDesc& d) override { return reference::make_norm_forward(d); }
  Made<NormBackward> norm_backward(const NormDesc& d) override { return reference::make_norm_backward(d); }
  Made<AttentionForward> attention_forward(const AttentionDesc& d) override {
    return reference::make_attention_forward(d);
  }
  Made<AttentionBackward> attention_backward(const AttentionDesc& d) override {
    return reference::make_attention_backward(d);
  }
  Made<Rotary> rotary(const RotaryDesc& d) override { return reference::make_rotary(d); }
  Made<ActivationForward> activation_forward(const ActivationDesc& d) override {
    return reference::make_activation_forward(d);
  }
  Made<ActivationBackward> activation_backward(const ActivationDesc& d) override {
    return reference::make_activation_backward(d);
  }
  Made<EmbeddingForward> embedding_forward(const EmbeddingDesc& d) override {
    return reference::make_embedding_forward(d);
  }
  Made<EmbeddingBackward> embedding_backward(const EmbeddingDesc& d) override {
    return reference::make_embedding_backward(d);
  }
  Made<CrossEntropy> cross_entropy(const CrossEntropyDesc& d) override { return reference::make_cross_entropy(d); }
  Made<Optimizer> optimizer(const OptimizerDesc& d) override { return reference::make_optimizer(d); }
  Made<GradientNorm> gradient_norm(const GradientNormDesc& d) override { return reference::make_gradient_norm(d); }
  Made<Elementwise> elementwise(const ElementwiseDesc& d) override { return reference::make_elementwise(d); }
  Made<Quantize> quantize(const QuantizeDesc& d) override { return reference::make_quantize(d); }
  Made<ScaleUpdate> scale_update(const ScaleUpdateDesc& d) override { return reference::make_scale_update(d); }
};

}  // namespace

std::shared_ptr<Backend> make_reference_backend() { return std::make_shared<ReferenceBackend>(); }

}  // namespace assay::ops
