// The arithmetic of cuBLASLt's stand-in, blocked so that small models train at a usable speed.
#include "tests/emulation/cublaslt_product.h"

#include "harness/core/error.h"
#include "workloads/ops/functors/activation.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace assay::emulation {

std::int64_t size_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_64F: return 8;
    case CUDA_R_32F:
    case CUDA_R_32I: return 4;
    case CUDA_R_16BF:
    case CUDA_R_16F: return 2;
    default: return 1;
  }
}

double read(const void* data, cudaDataType_t type, std::int64_t i) {
  switch (type) {
    case CUDA_R_64F: return static_cast<const double*>(data)[i];
    case CUDA_R_32F: return static_cast<double>(static_cast<const float*>(data)[i]);
    case CUDA_R_16BF: return static_cast<double>(__bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]));
    case CUDA_R_16F: return static_cast<double>(__half2float(static_cast<const __half*>(data)[i]));
    case CUDA_R_8F_E4M3: return static_cast<double>(static_cast<float>(static_cast<const __nv_fp8_e4m3*>(data)[i]));
    case CUDA_R_8F_E5M2: return static_cast<double>(static_cast<float>(static_cast<const __nv_fp8_e5m2*>(data)[i]));
    case CUDA_R_8I: return static_cast<const std::int8_t*>(data)[i];
    case CUDA_R_32I: return static_cast<const std::int32_t*>(data)[i];
    default: throw Error("emulated cuBLASLt: no such type to read");
  }
}

void write(void* data, cudaDataType_t type, std::int64_t i, double value) {
  switch (type) {
    case CUDA_R_64F: static_cast<double*>(data)[i] = value; break;
    case CUDA_R_32F: static_cast<float*>(data)[i] = static_cast<float>(value); break;
    case CUDA_R_16BF: static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16_rn(static_cast<float>(value)); break;
    case CUDA_R_16F: static_cast<__half*>(data)[i] = __float2half_rn(static_cast<float>(value)); break;
    case CUDA_R_32I: static_cast<std::int32_t*>(data)[i] = static_cast<std::int32_t>(value); break;
    default: throw Error("emulated cuBLASLt: no such type to write");
  }
}

namespace {

constexpr std::int64_t tall = 4, wide = 8;
using Lanes = double __attribute__((vector_size(wide * sizeof(double))));

// Rounds f32 to tf32 as tensor cores do: 10 bits of mantissa, to nearest.
double to_tf32(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if ((bits & 0x7f800000u) == 0x7f800000u) return value;
  return static_cast<double>(std::bit_cast<float>((bits + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u));
}

// Packs panels of `width` neighbours of the outer dimension, contiguous for each term of the sums, the last padded with
// zeros. `terms_first`: neighbours in memory are terms.
std::vector<double> panels(const void* data, const BlasMatrix& layout, bool terms_first, std::int64_t outer,
                           std::int64_t terms, std::int64_t width, bool tf32) {
  std::vector<double> packed(static_cast<std::size_t>((outer + width - 1) / width * width * terms));
  for (std::int64_t i = 0; i < outer; ++i)
    for (std::int64_t k = 0; k < terms; ++k) {
      const double value = read(data, layout.type, terms_first ? k + i * layout.leading : i + k * layout.leading);
      packed[static_cast<std::size_t>(i / width * width * terms + k * width + i % width)] =
          tf32 ? to_tf32(value) : value;
    }
  return packed;
}

__attribute__((optimize("O3"), target_clones("avx512f", "avx2,fma", "default"))) void block(const double* a,
                                                                                            const double* b,
                                                                                            std::int64_t terms,
                                                                                            double* sums) {
  Lanes total[tall] = {};
  for (std::int64_t k = 0; k < terms; ++k) {
    Lanes row;
    std::memcpy(&row, b + k * wide, sizeof row);
    for (std::int64_t i = 0; i < tall; ++i) total[i] += row * a[k * tall + i];
  }
  std::memcpy(sums, total, sizeof total);
}

struct Target {
  const BlasOperation& operation;
  double alpha, beta;
  const void* c;
  void* d;
  void* aux;
  const BlasMatrix& layout;

  // Element (row, column) of D.
  void store(std::int64_t row, std::int64_t column, double sum) const {
    const std::int64_t at = row + column * layout.leading;
    double value = alpha * sum;
    if (beta != 0) value += beta * read(c, layout.type, at);
    const std::uint32_t epilogue = operation.epilogue;
    if (epilogue & CUBLASLT_EPILOGUE_BIAS)
      value += read(operation.bias, static_cast<cudaDataType_t>(operation.bias_type), row);
    const auto aux_type = static_cast<cudaDataType_t>(operation.aux_type);
    const std::int64_t aux_at = row + column * operation.aux_leading;
    if (epilogue & CUBLASLT_EPILOGUE_GELU) {
      if (epilogue & 128u) write(aux, aux_type, aux_at, value);
      value = ops::functors::GeluTanh()(value);
    }
    if (epilogue == CUBLASLT_EPILOGUE_DGELU) value *= ops::functors::GeluTanhGradient()(read(aux, aux_type, aux_at));
    write(d, layout.type, at, value);
  }
};

const void* at(const void* data, const BlasMatrix& layout, std::int64_t item) {
  return static_cast<const char*>(data) + item * layout.batch_stride * size_of(layout.type);
}

}  // namespace

void multiply(const BlasOperation& operation, double alpha, const void* a, const BlasMatrix& a_layout, const void* b,
              const BlasMatrix& b_layout, double beta, const void* c, void* d, const BlasMatrix& d_layout) {
  const bool a_transposed = operation.transpose_a == CUBLAS_OP_T, b_transposed = operation.transpose_b == CUBLAS_OP_T;
  const std::int64_t m = d_layout.rows, n = d_layout.columns, terms = a_transposed ? a_layout.rows : a_layout.columns;
  const bool tf32 = operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  if (operation.a_scale) alpha *= static_cast<double>(*operation.a_scale);
  if (operation.b_scale) alpha *= static_cast<double>(*operation.b_scale);
  for (std::int64_t item = 0; item < d_layout.batch; ++item) {
    const auto left = panels(at(a, a_layout, item), a_layout, a_transposed, m, terms, wide, tf32);
    const auto right = panels(at(b, b_layout, item), b_layout, !b_transposed, n, terms, tall, tf32);
    void* const aux = static_cast<char*>(operation.aux) +
                      item * operation.aux_batch_stride * size_of(static_cast<cudaDataType_t>(operation.aux_type));
    const Target target{operation, alpha,   beta, at(c, d_layout, item), const_cast<void*>(at(d, d_layout, item)),
                        aux,       d_layout};
    for (std::int64_t column = 0; column < n; column += tall)
      for (std::int64_t row = 0; row < m; row += wide) {
        double sums[tall * wide];
        block(right.data() + column * terms, left.data() + row * terms, terms, sums);
        for (std::int64_t j = 0; j < std::min(tall, n - column); ++j)
          for (std::int64_t i = 0; i < std::min(wide, m - row); ++i)
            target.store(row + i, column + j, sums[j * wide + i]);
      }
    if (operation.epilogue != CUBLASLT_EPILOGUE_BGRADB) continue;
    for (std::int64_t column = 0; column < n; ++column) {
      double sum = 0;
      for (std::int64_t k = 0; k < terms; ++k)
        sum += right[static_cast<std::size_t>(column / tall * tall * terms + k * tall + column % tall)];
      write(operation.bias, static_cast<cudaDataType_t>(operation.bias_type), column, sum);
    }
  }
}

}  // namespace assay::emulation
