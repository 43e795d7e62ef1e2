// Sums of rows, or of columns if a is stored transposed; one thread computes each sum.
#include "workloads/ops/cpu/product_sums.h"

#include "harness/device/cpu/kernels.h"
#include "workloads/ops/cpu/parallel.h"

namespace assay::ops {

namespace {

constexpr std::int64_t sums_min_elements = 16384;  // per thread
constexpr std::int64_t sums_line = 64;             // columns: at least a cache line in every type

const ProductKernels::Type& sum_kernels_for(DType type) {
  const ProductKernels& kernels = cpu::kernels<ProductKernels>();
  return type == DType::bf16 ? kernels.bf16 : kernels.f32;
}

}  // namespace

ProductKernels::Gelu gelu_kernel(const MatmulDesc& d) {
  if (d.epilogue == Epilogue::gelu_tanh) return sum_kernels_for(d.out).gelu_tanh;
  return d.epilogue == Epilogue::gelu_erf ? sum_kernels_for(d.out).gelu_erf : nullptr;
}

ProductKernels::GeluGradient gelu_gradient_kernel(const MatmulDesc& d) {
  if (d.epilogue == Epilogue::gelu_tanh_gradient) return sum_kernels_for(d.out).gelu_tanh_gradient;
  return d.epilogue == Epilogue::gelu_erf_gradient ? sum_kernels_for(d.out).gelu_erf_gradient : nullptr;
}

RowSums::RowSums(const MatmulDesc& d)
    : m_(d.m),
      k_(d.k),
      transposed_(d.transpose_a),
      add_(d.accumulate),
      parts_(parts_for(d.m * d.k, sums_min_elements)),
      kernels_(sum_kernels_for(d.a)) {}

void RowSums::run(const void* a, float* sums) const {
  for_ranges(m_, sums_line, parts_, [&](std::int64_t begin, std::int64_t end) {
    if (transposed_)
      kernels_.column_sums(a, k_, m_, begin, end, add_, sums);
    else
      kernels_.row_sums(a, k_, begin, end, add_, sums);
  });
}

}  // namespace assay::ops
