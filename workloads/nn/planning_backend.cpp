#include "workloads/nn/planning_backend.h"

#include "harness/core/error.h"
#include "harness/device/cpu/kernels.h"
#include "workloads/ops/conv.h"

namespace assay::nn {

namespace {

using namespace ops;

// The common part of planned ops.
template <typename Base>
class Planned : public Base {
 public:
  std::string implementation() const override { return "planned"; }
  std::string isa() const override { return "none"; }
  void run(Stream&, const typename Base::Args&) override { throw Error("a memory plan cannot run"); }
};

class PlannedMatmul final : public Planned<Matmul> {
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
class PlannedConv final : public Planned<Base> {
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

class PlannedPool final : public Planned<PoolForward> {
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
  explicit PlanningBackend(DeviceKind device)
      : Backend([device]<typename Op>(const typename Op::Desc& desc) { return planned<Op>(device, desc); }) {}

  std::string name() const override { return "planning"; }
  std::string libraries() const override { return "none"; }

 private:
  template <typename Op>
  static Made<Op> planned(DeviceKind device, const typename Op::Desc& d) {
    const bool cpu = device == DeviceKind::cpu;
    if constexpr (std::is_same_v<Op, Matmul>) {
      if (cpu && d.out_stride > 0) return Made<Op>::no("rows are planned without gaps, as in the cpu backend");
      if (d.form == WeightForm::tiles) return Made<Op>::no("panels are planned without gaps, as packed weights");
      if (!cpu && d.form != WeightForm::plain) return Made<Op>::no("weights are used as stored");
      return std::unique_ptr<Op>(std::make_unique<PlannedMatmul>(d));
    } else if constexpr (std::is_base_of_v<PackedWeights, Op>) {
      return std::unique_ptr<Op>(std::make_unique<PlannedConv<Op>>(d, device));
    } else if constexpr (std::is_same_v<Op, PoolForward>) {
      return std::unique_ptr<Op>(std::make_unique<PlannedPool>(d));
    } else if constexpr (std::is_same_v<Op, GradientNorm>) {
      return std::unique_ptr<Op>(std::make_unique<PlannedGradientNorm>(d));
    } else {
      return std::unique_ptr<Op>(std::make_unique<Planned<Op>>());
    }
  }
};

}  // namespace

std::shared_ptr<Backend> make_planning_backend(DeviceKind device) { return std::make_shared<PlanningBackend>(device); }

}  // namespace assay::nn
