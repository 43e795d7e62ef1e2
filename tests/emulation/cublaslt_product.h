// The products of cuBLASLt's stand-in: column-major matrices in host memory.
#pragma once

#include <cublasLt.h>

#include <cstdint>

namespace assay::emulation {

struct BlasMatrix {
  cudaDataType_t type = CUDA_R_32F;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t leading = 0;
  std::int64_t batch = 1;
  std::int64_t batch_stride = 0;
};

// The supported attributes of cublasLtMatmulDesc_t.
struct BlasOperation {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F;
  cublasOperation_t transpose_a = CUBLAS_OP_N;
  cublasOperation_t transpose_b = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  std::int32_t bias_type = -1;
  void* aux = nullptr;
  std::int64_t aux_leading = 0;
  std::int64_t aux_batch_stride = 0;
  std::int32_t aux_type = -1;
  const float* a_scale = nullptr;
  const float* b_scale = nullptr;
  std::int8_t fast_accumulate = 0;
};

std::int64_t size_of(cudaDataType_t type);
double read(const void* data, cudaDataType_t type, std::int64_t index);
void write(void* data, cudaDataType_t type, std::int64_t index, double value);

// D = epilogue(alpha op(A) op(B) + beta C), summed in double, each result rounded once. BGRADB leaves D alone and
// writes the sums of op(B)'s columns to the bias pointer.
void multiply(const BlasOperation& operation, double alpha, const void* a, const BlasMatrix& a_layout, const void* b,
              const BlasMatrix& b_layout, double beta, const void* c, void* d, const BlasMatrix& d_layout);

}  // namespace assay::emulation
