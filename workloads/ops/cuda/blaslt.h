// Row-major matrix products by cuBLASLt, for the matmul op and the composite attention.
#pragma once

#include "workloads/ops/op.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::ops {

// Throws Error with the call, its location, and the status' name and meaning.
[[noreturn]] void fail(cublasStatus_t status, const char* call, const char* file, int line);

#define ASSAY_CUBLASLT(call)                                                                            \
  do {                                                                                                  \
    if (const cublasStatus_t assay_status = (call); assay_status != CUBLAS_STATUS_SUCCESS) [[unlikely]] \
      ::assay::ops::fail(assay_status, #call, __FILE__, __LINE__);                                      \
  } while (false)

// "cuBLASLt 13.1.0".
std::string blaslt_version_text();

inline constexpr std::int64_t bias_alignment = 16;  // bytes; parameters are slices of flat buffers

// GELU that the library applies to a product before it stores it.
enum class BlasGelu { none, forward, gradient };  // the tanh form; z is written to, or read from, aux

// out (M, N) = alpha op(a) (M, K) x op(b) (K, N) + beta out, all row-major, for each of `batch` items. f64, f32 (full
// precision), tf32, bf16, fp16, fp8 with f32 sums, and s8 with s32 sums, as in MatmulDesc.
struct BlasProduct {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType a = DType::f32;
  DType b = DType::f32;
  DType out = DType::f32;
  bool transpose_a = false;  // a is stored (K, M)
  bool transpose_b = false;  // b is stored (N, K)
  // Elements from one stored row to the next; 0: rows are contiguous.
  std::int64_t a_stride = 0;
  std::int64_t b_stride = 0;
  std::int64_t out_stride = 0;
  // Elements from one item of the batch to the next; 0 for an operand that all items share.
  std::int64_t batch = 1;
  std::int64_t a_batch = 0;
  std::int64_t b_batch = 0;
  std::int64_t out_batch = 0;
  float alpha = 1;
  float beta = 0;
  // Guaranteed alignment of the operands in bytes.
  std::int64_t a_alignment = 256;
  std::int64_t b_alignment = 256;
  std::int64_t out_alignment = 256;
  bool bias = false;  // adds args.bias (N), of out's type and aligned to bias_alignment, to each row
  BlasGelu gelu = BlasGelu::none;
  bool sums = false;    // writes the sums of op(a)'s rows to args.sums (M), of out's type; excludes bias, gelu and beta
  bool scaled = false;  // fp8: the product is multiplied by *args.scale_a and *args.scale_b
  bool fast_accumulate = false;  // fp8
  std::size_t workspace_limit = std::size_t{32} << 20;

  // All members as text; equal for equal products.
  std::string key() const;
};

struct BlasArgs {
  const void* a = nullptr;
  const void* b = nullptr;
  void* out = nullptr;
  void* workspace = nullptr;  // workspace_bytes(), aligned to 256
  const void* bias = nullptr;
  void* aux = nullptr;   // (M, N) with out's rows
  void* sums = nullptr;  // aligned to bias_alignment
  const float* scale_a = nullptr;
  const float* scale_b = nullptr;
};

// A product of one shape on the current device, with the algorithms that the library offers for it. run() only
// enqueues: it may be captured in a graph. Not thread-safe. Two runs give the same bits: of the algorithms that split
// sums, it only requests those that add the parts in a fixed order, in the type of the sums.
class BlasPlan {
 public:
  ~BlasPlan();
  BlasPlan(const BlasPlan&) = delete;
  BlasPlan& operator=(const BlasPlan&) = delete;

  const BlasProduct& product() const { return product_; }
  // The number of algorithms, in the order of the library's heuristics; fewer for large products, so that a search
  // takes seconds. The first one is chosen by default.
  std::size_t candidates() const { return algorithms_.size(); }
  void choose(std::size_t index) { chosen_ = index; }
  // The algorithm in the encoding of one library version and device, for a cache.
  std::string packed_algorithm() const;
  // Chooses what packed_algorithm() returned; false if the library rejects it.
  bool choose_packed(const std::string& packed);

  std::size_t workspace_bytes() const { return algorithms_[chosen_].workspaceSize; }
  std::size_t max_workspace_bytes() const;
  // "cublasLt algorithm 66, tile 20, stages 36, split 1, cluster 2".
  std::string algorithm() const;
  void run(cudaStream_t stream, const BlasArgs& args);
  // The same, but returns the library's error.
  cublasStatus_t try_run(cudaStream_t stream, const BlasArgs& args);

 private:
  friend Made<BlasPlan> make_blas_plan(const BlasProduct& product);
  BlasPlan() = default;

  void describe();
  cublasStatus_t find_algorithms();
  void set_pointers(const BlasArgs& args);

  BlasProduct product_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr;   // the library's A: our b
  cublasLtMatrixLayout_t second_ = nullptr;  // its B: our a
  cublasLtMatrixLayout_t result_ = nullptr;  // its C and D
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms_;
  std::size_t chosen_ = 0;
};

// A plan with the heuristics' first algorithm; the library's error if it has none for this product.
Made<BlasPlan> make_blas_plan(const BlasProduct& product);

}  // namespace assay::ops
