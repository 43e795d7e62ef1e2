// Sums of rows, or of columns if a is stored transposed; one thread computes each sum.
#include "workloads/ops/cpu/product_sums.h"

#include "harness/device/cpu/kernels.h"
#include "workloads/ops/cpu/parallel.h"

namespace assay::ops {

namespace {

constexpr std::int64_t min_elements = 16384;  // per thread
constexpr std::int64_t line = 64;             // columns: at least a cache line in every type

}  // namespace

RowSums::RowSums(const MatmulDesc& d)
    : m_(d.m),
      k_(d.k),
      transposed_(d.transpose_a),
      add_(d.accumulate),
      parts_(parts_for(d.m * d.k, min_elements)),
      kernels_(d.a == DType::bf16 ? cpu::kernels<ProductKernels>().bf16 : cpu::kernels<ProductKernels>().f32) {}

void RowSums::run(const void* a, float* sums) const {
  for_ranges(m_, line, parts_, [&](std::int64_t begin, std::int64_t end) {
    if (transposed_)
      kernels_.column_sums(a, k_, m_, begin, end, add_, sums);
    else
      kernels_.row_sums(a, k_, begin, end, add_, sums);
  });
}

}  // namespace assay::ops
