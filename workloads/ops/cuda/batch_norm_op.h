// Common parts of the batch norm ops that use our own kernels.
#pragma once

#include "workloads/ops/batch_norm.h"
#include "workloads/ops/cuda/batch_norm_rows.h"
#include "workloads/ops/cuda/cuda_op.h"

#include <algorithm>
#include <cstddef>

namespace assay::ops {

template <typename Base>
class CudaBatchNorm : public CudaOp<Base> {
 protected:
  // `resident`: blocks per multiprocessor.
  CudaBatchNorm(Device& device, const BatchNormDesc& desc, int resident)
      : CudaOp<Base>(device),
        d_(desc),
        narrow_(BatchNormRows::of(desc.rows, desc.channels, 1, this->units(), resident)),
        wide_(narrow_) {
    const int lanes = static_cast<int>(16 / size_of(desc.dtype));
    if (desc.channels % lanes == 0) wide_ = BatchNormRows::of(desc.rows, desc.channels, lanes, this->units(), resident);
  }

  // Size of one set of partial sums.
  std::size_t partial_bytes() const {
    return std::max(wide_.partial_floats(), narrow_.partial_floats()) * sizeof(float);
  }

  // Calls `kernels.operator()<T, N>(rows)` for the op's type, with N elements in 16 bytes if all arrays are aligned to
  // that, else with N = 1.
  template <typename Kernels>
  void run_kernels(bool aligned, const Kernels& kernels) const {
    with_type(d_.dtype, [&]<typename T>() {
      if (wide_.width > 1 && aligned)
        kernels.template operator()<T, cuda::lanes<T>>(wide_);
      else
        kernels.template operator()<T, 1>(narrow_);
    });
  }

  BatchNormDesc d_;

 private:
  BatchNormRows narrow_, wide_;
};

}  // namespace assay::ops
