#include "workloads/nn/planning_backend.h"

#include "harness/core/error.h"
#include "harness/device/cpu/kernels.h"
#include "workloads/ops/winograd.h"

namespace assay::nn {

namespace {

using namespace ops;

// What ops of every kind have in common here.
template <typename Base, typename Args>
class Planned : public Base {
 public:
  std::string implementation() const override { return "planned"; }
  std::string isa() const override { return "none"; }
  void run(Stream&, const Args&) override { throw Error("a memory plan cannot run"); }
};

class PlannedMatmul final : public Planned<Matmul, MatmulArgs> {
 public:
  explicit PlannedMatmul(const MatmulDesc& d)
      : packed_(packs(d) ? static_cast<std::size_t>(d.k * d.n) * size_of(d.b) : 0) {}
  std::size_t packed_bytes() const override { return packed_; }

 private:
  // Without AVX-512, f32 products use weights as they are stored (dnnl_matmul.cpp).
  static bool packs(const MatmulDesc& d) {
    const bool as_stored = d.a == DType::f32 && d.pack_from == d.b && !cpu::supports(cpu::Isa::avx512);
    return d.form != WeightForm::plain && !as_stored;
  }

  std::size_t packed_;
};

template <typename Base>
class PlannedConv final : public Planned<Base, typename Base::Args> {
 public:
  PlannedConv(const ConvDesc& d, DeviceKind device) : packed_(packed_bytes_of(d, device)) {}
  std::size_t packed_bytes() const override { return packed_; }
  void pack(Stream&, const void*, void*) override { throw Error("a memory plan cannot run"); }

 private:
  static std::size_t packed_bytes_of(const ConvDesc& d, DeviceKind device) {
    if (device != DeviceKind::cpu && size_of(d.pack_from) == size_of(d.dtype)) return 0;
    const std::int64_t window = device == DeviceKind::cpu && winograd_suits(d) ? winograd_positions : d.r * d.s;
    return static_cast<std::size_t>(d.k * window * d.c / d.groups) * size_of(d.dtype);
  }

  std::size_t packed_;
};

class PlannedPool final : public Planned<PoolForward, PoolForward::Args> {
 public:
  // The position of the maximum within its window: one byte per element.
  explicit PlannedPool(const PoolDesc& d)
      : saved_(d.kind == PoolKind::average ? 0 : static_cast<std::size_t>(d.n * d.p() * d.q() * d.c)) {}
  std::size_t saved_bytes() const override { return saved_; }

 private:
  std::size_t saved_;
};

class PlannedGradientNorm final : public GradientNorm {
 public:
  explicit PlannedGradientNorm(const GradientNormDesc& d)
      : sums_(static_cast<std::int64_t>(square_sum_blocks(d).size())) {}
  std::string implementation() const override { return "planned"; }
  std::string isa() const override { return "none"; }
  std::int64_t sums() const override { return sums_; }
  void sum(Stream&, const Args&) override { throw Error("a memory plan cannot run"); }
  void fold(Stream&, const Args&) override { throw Error("a memory plan cannot run"); }

 private:
  std::int64_t sums_;
};

class PlanningBackend final : public Backend {
 public:
  explicit PlanningBackend(DeviceKind device) : device_(device) {}

  std::string name() const override { return "planning"; }
  std::string libraries() const override { return "none"; }

  Made<Matmul> make(const MatmulDesc& d) override {
    const bool cpu = device_ == DeviceKind::cpu;
    if (cpu && d.out_stride > 0) return Made<Matmul>::no("rows are planned without gaps, as in the cpu backend");
    if (!cpu && d.form != WeightForm::plain) return Made<Matmul>::no("weights are used as stored");
    return done<Matmul>(std::make_unique<PlannedMatmul>(d));
  }
  Made<ConvForward> conv_forward(const ConvDesc& d) override { return conv<ConvForward>(d); }
  Made<ConvBackwardData> conv_backward_data(const ConvDesc& d) override { return conv<ConvBackwardData>(d); }
  Made<ConvBackwardWeights> conv_backward_weights(const ConvDesc&) override { return op<ConvBackwardWeights>(); }
  Made<BatchNormForward> batch_norm_forward(const BatchNormDesc&) override { return op<BatchNormForward>(); }
  Made<BatchNormBackward> batch_norm_backward(const BatchNormDesc&) override { return op<BatchNormBackward>(); }
  Made<PoolForward> pool_forward(const PoolDesc& d) override {
    return done<PoolForward>(std::make_unique<PlannedPool>(d));
  }
  Made<PoolBackward> pool_backward(const PoolDesc&) override { return op<PoolBackward>(); }
  Made<NormForward> norm_forward(const NormDesc&) override { return op<NormForward>(); }
  Made<NormBackward> norm_backward(const NormDesc&) override { return op<NormBackward>(); }
  Made<AttentionForward> attention_forward(const AttentionDesc&) override { return op<AttentionForward>(); }
  Made<AttentionBackward> attention_backward(const AttentionDesc&) override { return op<AttentionBackward>(); }
  Made<Rotary> rotary(const RotaryDesc&) override { return op<Rotary>(); }
  Made<ActivationForward> activation_forward(const ActivationDesc&) override { return op<ActivationForward>(); }
  Made<ActivationBackward> activation_backward(const ActivationDesc&) override { return op<ActivationBackward>(); }
  Made<EmbeddingForward> embedding_forward(const EmbeddingDesc&) override { return op<EmbeddingForward>(); }
  Made<EmbeddingBackward> embedding_backward(const EmbeddingDesc&) override { return op<EmbeddingBackward>(); }
  Made<CrossEntropy> cross_entropy(const CrossEntropyDesc&) override { return op<CrossEntropy>(); }
  Made<Optimizer> optimizer(const OptimizerDesc&) override { return op<Optimizer>(); }
  Made<GradientNorm> gradient_norm(const GradientNormDesc& d) override {
    return done<GradientNorm>(std::make_unique<PlannedGradientNorm>(d));
  }
  Made<Elementwise> elementwise(const ElementwiseDesc&) override { return op<Elementwise>(); }
  Made<Quantize> quantize(const QuantizeDesc&) override { return op<Quantize>(); }
  Made<ScaleUpdate> scale_update(const ScaleUpdateDesc&) override { return op<ScaleUpdate>(); }

 private:
  template <typename Base>
  static Made<Base> done(std::unique_ptr<Base> made) {
    return Made<Base>(std::move(made));
  }
  template <typename Base>
  static Made<Base> op() {
    return done<Base>(std::make_unique<Planned<Base, typename Base::Args>>());
  }
  template <typename Base>
  Made<Base> conv(const ConvDesc& d) const {
    return done<Base>(std::make_unique<PlannedConv<Base>>(d, device_));
  }

  DeviceKind device_;
};

}  // namespace

std::shared_ptr<Backend> make_planning_backend(DeviceKind device) { return std::make_shared<PlanningBackend>(device); }

}  // namespace assay::nn
