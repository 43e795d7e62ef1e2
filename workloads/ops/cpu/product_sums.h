// The sums of op(a)'s rows that a product computes on request: the gradient of a bias.
#pragma once

#include "workloads/ops/cpu/kernels/product_kernels.h"
#include "workloads/ops/matmul.h"

namespace assay::ops {

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
