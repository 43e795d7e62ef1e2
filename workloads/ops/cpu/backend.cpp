// The CPU backend: oneDNN, a BLAS and our own kernels. No other folder includes oneDNN or a BLAS.
#include "workloads/ops/backend.h"

#include "workloads/ops/cpu/cpu_ops.h"
#include "workloads/ops/cpu/dnnl_common.h"

#include <fmt/format.h>

namespace assay::ops {

namespace {

class CpuBackend final : public Backend {
 public:
  std::string name() const override { return "cpu"; }
  std::string libraries() const override {
    return fmt::format("{}; {}", dnnl_version_text(), blas_ ? blas_->text() : "no BLAS");
  }

  CpuBackend() : Backend([this]<typename Op>(const typename Op::Desc& desc) { return made<Op>(desc); }) {}

  template <typename Op>
  Made<Op> made(const typename Op::Desc& desc) const {
    if constexpr (std::is_same_v<Op, Quantize> || std::is_same_v<Op, ScaleUpdate>)
      return Made<Op>::no("the cpu backend has no such op");
    else if constexpr (std::is_same_v<Op, Matmul>)
      return product(desc);
    else
      return make_cpu<Op>(desc);
  }

  Made<Matmul> product(const MatmulDesc& desc) const {
    if (desc.a != DType::f64 && desc.a != DType::f32 && desc.a != DType::bf16 && desc.a != DType::u8)
      return Made<Matmul>::no(fmt::format("no product of {} x {} on the CPU", name_of(desc.a), name_of(desc.b)));
    if (desc.a_stride || desc.b_stride || desc.out_stride)
      return Made<Matmul>::no("products on the CPU need contiguous rows");
    if (desc.form == WeightForm::tiles) return make_tile_matmul(desc);
    if (is_weight_gradient(desc))
      if (auto made = make_tile_matmul(desc)) return made;
    if (desc.a != DType::f64) return make_dnnl_matmul(desc);
    if (!blas_) return Made<Matmul>::no("f64 needs a BLAS: " + fmt::format("{}", fmt::join(tried_, "; ")));
    return make_blas_matmul(desc, *blas_);
  }

 private:
  std::vector<std::string> tried_;
  std::optional<BlasLibrary> blas_ = load_blas(tried_);
};

}  // namespace
}  // namespace assay::ops

extern "C" __attribute__((visibility("default"))) assay::ops::Backend* assay_make_cpu_backend(assay::Device*) {
  return new assay::ops::CpuBackend();
}
