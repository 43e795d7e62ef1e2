// Kernels for the parts of a product that cuBLASLt does not do.
#pragma once

#include "harness/core/dtype.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace assay::ops {

// to (columns, rows) = from (rows, columns) transposed, one byte per element; rows of `from` are `stride` bytes apart.
void transpose_bytes(const void* from, void* to, std::int64_t rows, std::int64_t columns, std::int64_t stride,
                     cudaStream_t stream);

// Converts `count` elements between f64, f32, bf16 and fp16.
void cast_bias(const void* from, DType from_type, void* to, DType to_type, std::int64_t count, cudaStream_t stream);

// out (rows, columns), rows `stride` apart, += bias (columns) of the same type.
void add_bias(void* out, const void* bias, DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t stride,
              cudaStream_t stream);

// Sums the rows of op(a) (m, k) in f32 (f64 for f64), in an order that depends only on the sizes.
class RowSums {
 public:
  RowSums(DType dtype, bool transposed, std::int64_t m, std::int64_t k, std::int64_t stride);
  std::size_t workspace_bytes() const;
  // Writes, or adds to, sums (m).
  void run(const void* a, void* sums, void* workspace, bool accumulate, cudaStream_t stream) const;

 private:
  DType dtype_;
  bool transposed_;
  std::int64_t m_, k_, stride_;
  int parts_;  // parts into which the rows of a transposed a are divided
};

}  // namespace assay::ops
