// Layer norm and RMS norm: threads share the rows. Each thread sums its part of the parameter gradients separately, and
// the parts are added in order.
#include "workloads/ops/cpu/cpu_ops.h"
#include "workloads/ops/cpu/kernels/norm_kernels.h"
#include "workloads/ops/cpu/parallel.h"

#include <algorithm>

namespace assay::ops {

namespace {

constexpr std::int64_t norm_min_elements = 4096;  // per thread: splitting less work costs more than it saves
constexpr std::int64_t line = 16;                 // f32 per cache line

int row_parts(const NormDesc& d) {
  return std::min<int>(parts_for(d.rows * d.columns, norm_min_elements),
                       static_cast<int>(std::min<std::int64_t>(d.rows, 1 << 20)));
}

class CpuNormForward final : public VectorOp<NormForward> {
 public:
  CpuNormForward(const NormDesc& desc)
      : d_(desc),
        parts_(row_parts(desc)),
        kernel_(desc.dtype == DType::f32 ? cpu::kernels<NormKernels>().forward_f32
                                         : cpu::kernels<NormKernels>().forward_bf16) {}

  void run(Stream&, const Args& args) override {
    const NormForwardRows rows{.layer = d_.kind == NormKind::layer,
                               .x = args.x,
                               .residual = d_.residual ? args.residual : nullptr,
                               .sum = args.sum,
                               .weight = static_cast<const float*>(args.weight),
                               .bias = d_.bias ? static_cast<const float*>(args.bias) : nullptr,
                               .y = args.y,
                               .mean = static_cast<float*>(args.saved_mean),
                               .inverse = static_cast<float*>(args.saved_inverse_deviation),
                               .columns = d_.columns,
                               .epsilon = static_cast<float>(d_.epsilon)};
    for_ranges(d_.rows, 1, parts_, [&](std::int64_t begin, std::int64_t end) { kernel_(rows, begin, end); });
  }

 private:
  NormDesc d_;
  int parts_;
  NormKernels::Forward kernel_;
};

class CpuNormBackward final : public VectorOp<NormBackward> {
 public:
  CpuNormBackward(const NormDesc& desc)
      : d_(desc),
        parts_(row_parts(desc)),
        stride_((desc.columns + line - 1) / line * line),
        kernels_(cpu::kernels<NormKernels>()),
        has_bias_(desc.kind == NormKind::layer && desc.bias) {}

  // (parts, dweight and dbias, stride) f32.
  std::size_t workspace_bytes() const override {
    return sizeof(float) * static_cast<std::size_t>(parts_) * 2 * static_cast<std::size_t>(stride_);
  }

  void run(Stream&, const Args& args) override {
    const auto kernel = d_.dtype == DType::f32 ? kernels_.backward_f32 : kernels_.backward_bf16;
    auto* partials = static_cast<float*>(args.workspace);
    for_parts(parts_, [&](int part) {
      float* dweight = partials + part * 2 * stride_;
      std::fill_n(dweight, 2 * stride_, 0.0f);
      const NormBackwardRows rows{.layer = d_.kind == NormKind::layer,
                                  .dy = args.dy,
                                  .sum = args.sum,
                                  .dsum = args.dsum,
                                  .weight = static_cast<const float*>(args.weight),
                                  .mean = static_cast<const float*>(args.saved_mean),
                                  .inverse = static_cast<const float*>(args.saved_inverse_deviation),
                                  .dx = args.dx,
                                  .dweight = dweight,
                                  .dbias = has_bias_ ? dweight + stride_ : nullptr,
                                  .columns = d_.columns};
      const Part mine = part_of(d_.rows, 1, part, parts_);
      kernel(rows, mine.begin, mine.end);
    });
    const auto add_up = [&](const float* from, void* to) {
      kernels_.sum_parts(from, parts_, 2 * stride_, static_cast<float*>(to), d_.accumulate, 0, d_.columns);
    };
    add_up(partials, args.dweight);
    if (has_bias_) add_up(partials + stride_, args.dbias);
  }

 private:
  NormDesc d_;
  int parts_;
  std::int64_t stride_;
  const NormKernels& kernels_;
  bool has_bias_;
};

}  // namespace

template <>
Made<NormForward> make_cpu(const NormDesc& desc) {
  return make_unless<NormForward, CpuNormForward>(type_problem("norm", {desc.dtype}), desc);
}

template <>
Made<NormBackward> make_cpu(const NormDesc& desc) {
  return make_unless<NormBackward, CpuNormBackward>(type_problem("norm", {desc.dtype}), desc);
}

}  // namespace assay::ops
