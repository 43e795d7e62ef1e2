// What accompanies a product: the kernel of its epilogue, and the sums of op(a)'s rows that it computes on request, the
// gradient of a bias.
#pragma once

#include "workloads/ops/cpu/kernels/product_kernels.h"
#include "workloads/ops/matmul.h"

namespace assay::ops {

// For out's type, f32 or bf16; null if the product has no such epilogue.
ProductKernels::Gelu gelu_kernel(const MatmulDesc& desc);
ProductKernels::GeluGradient gelu_gradient_kernel(const MatmulDesc& desc);

class RowSums {
 public:
  explicit RowSums(const MatmulDesc& desc);
  void run(const void* a, float* sums) const;

 private:
  std::int64_t m_, k_;
  bool transposed_, add_;
  int parts_;
  const ProductKernels::Type& kernels_;
};

}  // namespace assay::ops
