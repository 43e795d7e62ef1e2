// A backend makes ops for a device: reference/ (in the binary), or the module cpu or cuda.
#pragma once

#include "workloads/ops/activation.h"
#include "workloads/ops/attention.h"
#include "workloads/ops/batch_norm.h"
#include "workloads/ops/conv.h"
#include "workloads/ops/cross_entropy.h"
#include "workloads/ops/elementwise.h"
#include "workloads/ops/embedding.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/norm.h"
#include "workloads/ops/optimizer.h"
#include "workloads/ops/pool.h"
#include "workloads/ops/quantize.h"
#include "workloads/ops/rotary.h"

#include <memory>
#include <string>

namespace assay::ops {

// Each method builds an op for a descriptor, or gives the reason this device has none; a backend overrides those it
// supports.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;  // reference, cpu, cuda
  // Libraries and versions, as recorded: "oneDNN 3.2.0; OpenBLAS 0.3.21 (SkylakeX)".
  virtual std::string libraries() const = 0;

  virtual Made<Matmul> make(const MatmulDesc&) { return none<Matmul>(); }
  virtual Made<ConvForward> conv_forward(const ConvDesc&) { return none<ConvForward>(); }
  virtual Made<ConvBackwardData> conv_backward_data(const ConvDesc&) { return none<ConvBackwardData>(); }
  virtual Made<ConvBackwardWeights> conv_backward_weights(const ConvDesc&) { return none<ConvBackwardWeights>(); }
  virtual Made<BatchNormForward> batch_norm_forward(const BatchNormDesc&) { return none<BatchNormForward>(); }
  virtual Made<BatchNormBackward> batch_norm_backward(const BatchNormDesc&) { return none<BatchNormBackward>(); }
  virtual Made<PoolForward> pool_forward(const PoolDesc&) { return none<PoolForward>(); }
  virtual Made<PoolBackward> pool_backward(const PoolDesc&) { return none<PoolBackward>(); }
  virtual Made<NormForward> norm_forward(const NormDesc&) { return none<NormForward>(); }
  virtual Made<NormBackward> norm_backward(const NormDesc&) { return none<NormBackward>(); }
  virtual Made<AttentionForward> attention_forward(const AttentionDesc&) { return none<AttentionForward>(); }
  virtual Made<AttentionBackward> attention_backward(const AttentionDesc&) { return none<AttentionBackward>(); }
  virtual Made<Rotary> rotary(const RotaryDesc&) { return none<Rotary>(); }
  virtual Made<ActivationForward> activation_forward(const ActivationDesc&) { return none<ActivationForward>(); }
  virtual Made<ActivationBackward> activation_backward(const ActivationDesc&) { return none<ActivationBackward>(); }
  virtual Made<EmbeddingForward> embedding_forward(const EmbeddingDesc&) { return none<EmbeddingForward>(); }
  virtual Made<EmbeddingBackward> embedding_backward(const EmbeddingDesc&) { return none<EmbeddingBackward>(); }
  virtual Made<CrossEntropy> cross_entropy(const CrossEntropyDesc&) { return none<CrossEntropy>(); }
  virtual Made<Optimizer> optimizer(const OptimizerDesc&) { return none<Optimizer>(); }
  virtual Made<GradientNorm> gradient_norm(const GradientNormDesc&) { return none<GradientNorm>(); }
  virtual Made<Elementwise> elementwise(const ElementwiseDesc&) { return none<Elementwise>(); }
  virtual Made<Quantize> quantize(const QuantizeDesc&) { return none<Quantize>(); }
  virtual Made<ScaleUpdate> scale_update(const ScaleUpdateDesc&) { return none<ScaleUpdate>(); }

 private:
  template <typename Op>
  Made<Op> none() const {
    return Made<Op>::no("the " + name() + " backend has no such op");
  }
};

// The oracle: naive loops that accumulate in double (64-bit integers for int8). Every op in f64, f32 and bf16.
std::shared_ptr<Backend> make_reference_backend();
// The backend for the device's kind, from its module, loaded once per process. Throws Error if the module is missing.
std::shared_ptr<Backend> backend_for(Device& device);

}  // namespace assay::ops
