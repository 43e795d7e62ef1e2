// Casts and sums of flat arrays.
#include "workloads/ops/cpu/cpu_ops.h"
#include "workloads/ops/cpu/kernels/flat_kernels.h"
#include "workloads/ops/cpu/parallel.h"

#include <cmath>

namespace assay::ops {

namespace {

constexpr std::int64_t elementwise_min_elements = 16384;  // per thread

class CpuElementwise final : public VectorOp<Elementwise> {
 public:
  CpuElementwise(const ElementwiseDesc& desc)
      : d_(desc),
        parts_(parts_for(desc.count, elementwise_min_elements)),
        kernel_(cpu::kernels<FlatKernels>().elementwise[desc.in == DType::bf16][desc.out == DType::bf16]) {}

  void run(Stream&, const Args& args) override {
    const void* b = d_.kind == ElementwiseKind::add ? args.b : nullptr;
    for_ranges(d_.count, 64, parts_,
               [&](std::int64_t begin, std::int64_t end) { kernel_(args.a, b, args.out, begin, end); });
  }

 private:
  ElementwiseDesc d_;
  int parts_;
  FlatKernels::Elementwise kernel_;
};

// For a few thousand statistics: too little work to split, so it runs on the calling thread.
class CpuCombine final : public VectorOp<Elementwise> {
 public:
  CpuCombine(const ElementwiseDesc& desc) : d_(desc) {}

  void run(Stream&, const Args& args) override {
    const auto alpha = static_cast<float>(d_.alpha), beta = static_cast<float>(d_.beta);
    const auto* a = static_cast<const float*>(args.a);
    const auto* b = static_cast<const float*>(args.b);
    auto* out = static_cast<float*>(args.out);
    for (std::int64_t i = 0; i < d_.count; ++i) out[i] = std::fma(alpha, a[i], beta * b[i]);
  }

 private:
  ElementwiseDesc d_;
};

Made<Elementwise> make_combine(const ElementwiseDesc& desc) {
  if (desc.in != DType::f32 || desc.out != DType::f32)
    return Made<Elementwise>::no("the cpu backend combines only arrays of f32");
  return make_unless<Elementwise, CpuCombine>("", desc);
}

}  // namespace

template <>
Made<Elementwise> make_cpu(const ElementwiseDesc& desc) {
  if (desc.kind == ElementwiseKind::combine) return make_combine(desc);
  return make_unless<Elementwise, CpuElementwise>(type_problem("elementwise", {desc.in, desc.out}), desc);
}

}  // namespace assay::ops
