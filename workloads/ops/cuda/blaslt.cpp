// Plans of cuBLASLt. The library is column-major: a row-major product is the product of the transposes in reverse
// order, so our b is its A, our a its B, and rows are columns.
#include "workloads/ops/cuda/blaslt.h"

#include "harness/core/error.h"
#include "harness/core/streams.h"
#include "harness/device/cuda/check.h"
#include "harness/device/cuda/native.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace assay::ops {

void fail(cublasStatus_t status, const char* call, const char* file, int line) {
  throw Error(fmt::format("{} failed: {} ({}) at {}:{}", call, cublasLtGetStatusString(status),
                          cublasLtGetStatusName(status), file, line));
}

std::string blaslt_version_text() {
  const std::size_t version = cublasLtGetVersion();  // 130100 for 13.1.0
  return fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

namespace {

constexpr int max_candidates = 64, min_candidates = 8;

// As many candidates as a search can time in seconds, estimated from the product's work in units of tensor-core work
// (f32 and f64 are 16 times slower).
int candidates_for(const BlasProduct& p) {
  const bool slow = p.a == DType::f32 || p.a == DType::f64;
  const double work = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
                      static_cast<double>(p.batch) * (slow ? 16 : 1);
  return static_cast<int>(std::clamp(1e15 / work, double{min_candidates}, double{max_candidates}));
}

// One per device, never destroyed: that would wait for a device that may be gone by then.
cublasLtHandle_t handle_of_current_device() {
  static std::mutex mutex;
  static std::map<int, cublasLtHandle_t> handles;
  cuda::use_own_gpu();  // a new thread starts on GPU 0
  int device = 0;
  ASSAY_CUDA(cudaGetDevice(&device));
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& handle = handles[device];
  if (!handle) ASSAY_CUBLASLT(cublasLtCreate(&handle));
  return handle;
}

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f64: return CUDA_R_64F;
    case DType::f32:
    case DType::tf32: return CUDA_R_32F;
    case DType::bf16: return CUDA_R_16BF;
    case DType::fp16: return CUDA_R_16F;
    case DType::fp8_e4m3: return CUDA_R_8F_E4M3;
    case DType::fp8_e5m2: return CUDA_R_8F_E5M2;
    case DType::s8: return CUDA_R_8I;
    case DType::i32: return CUDA_R_32I;
    default: throw Error(fmt::format("cuBLASLt has no products of {}", name_of(dtype)));
  }
}

cublasComputeType_t compute_type(DType a) {
  if (a == DType::f64) return CUBLAS_COMPUTE_64F;
  if (a == DType::s8) return CUBLAS_COMPUTE_32I;
  return a == DType::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

cudaDataType_t scale_type(DType a) {
  if (a == DType::f64) return CUDA_R_64F;
  return a == DType::s8 ? CUDA_R_32I : CUDA_R_32F;
}

// A number in the type that the library expects alpha and beta in.
struct Scalar {
  alignas(8) unsigned char bytes[8] = {};

  Scalar(DType a, float value) {
    if (a == DType::f64)
      put(static_cast<double>(value));
    else if (a == DType::s8)
      put(static_cast<std::int32_t>(value));
    else
      put(value);
  }

 private:
  template <typename T>
  void put(T value) {
    std::memcpy(bytes, &value, sizeof value);
  }
};

template <typename T>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, T value) {
  ASSAY_CUBLASLT(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value));
}

template <typename T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, T value) {
  ASSAY_CUBLASLT(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
}

cublasLtMatrixLayout_t make_layout(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t leading,
                                   std::int64_t batch, std::int64_t batch_stride) {
  cublasLtMatrixLayout_t layout = nullptr;
  ASSAY_CUBLASLT(cublasLtMatrixLayoutCreate(&layout, data_type(dtype), static_cast<std::uint64_t>(rows),
                                            static_cast<std::uint64_t>(columns), leading));
  if (batch > 1) {
    const auto count = static_cast<std::int32_t>(batch);
    ASSAY_CUBLASLT(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
    ASSAY_CUBLASLT(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batch_stride,
                                                    sizeof batch_stride));
  }
  return layout;
}

std::int64_t row_of(std::int64_t stride, std::int64_t columns) { return stride > 0 ? stride : columns; }

cublasLtEpilogue_t epilogue_of(const BlasProduct& p) {
  switch (p.gelu) {
    case BlasGelu::forward: return p.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case BlasGelu::gradient: return CUBLASLT_EPILOGUE_DGELU;
    case BlasGelu::none: break;
  }
  if (p.sums) return CUBLASLT_EPILOGUE_BGRADB;  // our a is the library's B
  return p.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

int number(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute, bool narrow = false) {
  std::uint32_t wide = 0;
  std::uint16_t small = 0;
  std::size_t written = 0;
  const cublasStatus_t status = narrow
                                    ? cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &small, 2, &written)
                                    : cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &wide, 4, &written);
  if (status != CUBLAS_STATUS_SUCCESS) return -1;
  return static_cast<int>(narrow ? small : wide);
}

std::string text_of(const cublasLtMatmulAlgo_t& algorithm) {
  return fmt::format("cublasLt algorithm {}, tile {}, stages {}, split {}, swizzle {}, cluster {}, option {}",
                     number(algorithm, CUBLASLT_ALGO_CONFIG_ID), number(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID),
                     number(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID),
                     number(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
                     number(algorithm, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING),
                     number(algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, true),
                     number(algorithm, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION));
}

// What the heuristics answered, as one line of JSON at the end of the file in ASSAY_HEURISTICS_LOG: tests/gpu/check
// brings that home from a GPU. Whole lines, also from several ranks.
void log_heuristics(const BlasProduct& product, cublasStatus_t status, int count, const cublasLtMatmulAlgo_t& first) {
  const char* path = std::getenv("ASSAY_HEURISTICS_LOG");
  if (!path || !*path) return;
  const std::string line =
      fmt::format("{{\"product\": \"{}\", \"status\": \"{}\", \"count\": {}, \"first\": \"{}\"}}\n", product.key(),
                  cublasLtGetStatusName(status), count, count > 0 ? text_of(first) : "");
  const int file = ::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0 || ::write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    say("ASSAY_HEURISTICS_LOG={}: {}", path, std::strerror(errno));
  if (file >= 0) ::close(file);
}

}  // namespace

std::string BlasProduct::key() const {
  return fmt::format(
      "{}x{}x{} {}{} {}{} {} rows {},{},{} batch {} of {},{},{} alpha {} beta {} aligned {},{},{} bias {} gelu {} "
      "sums {} scaled {} fast {} workspace {}",
      m, n, k, name_of(a), transpose_a ? "t" : "", name_of(b), transpose_b ? "t" : "", name_of(out), a_stride, b_stride,
      out_stride, batch, a_batch, b_batch, out_batch, alpha, beta, a_alignment, b_alignment, out_alignment, int{bias},
      static_cast<int>(gelu), int{sums}, int{scaled}, int{fast_accumulate}, workspace_limit);
}

BlasPlan::~BlasPlan() {
  if (operation_) cublasLtMatmulDescDestroy(operation_);
  for (cublasLtMatrixLayout_t layout : {first_, second_, result_})
    if (layout) cublasLtMatrixLayoutDestroy(layout);
}

void BlasPlan::describe() {
  const BlasProduct& p = product_;
  ASSAY_CUBLASLT(cublasLtMatmulDescCreate(&operation_, compute_type(p.a), scale_type(p.a)));
  set(operation_, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation_, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  const cublasLtEpilogue_t epilogue = epilogue_of(p);
  set(operation_, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  const std::int64_t out_row = row_of(p.out_stride, p.n);
  // The output's type, as for aux: the library's default except for fp8.
  if (p.bias && p.scaled) set(operation_, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(p.out));
  if (p.gelu != BlasGelu::none) {
    set(operation_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, out_row);
    if (p.batch > 1) set(operation_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, p.out_batch);
  }
  if (p.fast_accumulate) set(operation_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
  const auto rows = [](bool transposed, std::int64_t inner, std::int64_t outer) { return transposed ? inner : outer; };
  first_ = make_layout(p.b, rows(p.transpose_b, p.k, p.n), rows(p.transpose_b, p.n, p.k),
                       row_of(p.b_stride, p.transpose_b ? p.k : p.n), p.batch, p.b_batch);
  second_ = make_layout(p.a, rows(p.transpose_a, p.m, p.k), rows(p.transpose_a, p.k, p.m),
                        row_of(p.a_stride, p.transpose_a ? p.m : p.k), p.batch, p.a_batch);
  result_ = make_layout(p.out, p.n, p.m, out_row, p.batch, p.out_batch);
}

void BlasPlan::set_pointers(const BlasArgs& args) {
  if (product_.bias) set(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, args.bias);
  if (product_.sums) set(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, args.sums);  // written to
  if (product_.gelu != BlasGelu::none) set(operation_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, args.aux);
  if (product_.scaled) {
    set(operation_, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, args.scale_b);
    set(operation_, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, args.scale_a);
  }
}

cublasStatus_t BlasPlan::find_algorithms() {
  // The heuristics use these pointers only for their alignment, which then holds for every run.
  const auto at_multiple_of = [](std::int64_t bytes) { return reinterpret_cast<void*>(bytes); };
  const auto* number = static_cast<const float*>(at_multiple_of(4));
  set_pointers({.bias = at_multiple_of(bias_alignment),
                .aux = at_multiple_of(product_.out_alignment),
                .sums = at_multiple_of(bias_alignment),
                .scale_a = number,
                .scale_b = number});
  cublasLtMatmulPreference_t preference = nullptr;
  ASSAY_CUBLASLT(cublasLtMatmulPreferenceCreate(&preference));
  const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, decltype(&cublasLtMatmulPreferenceDestroy)> owner(
      preference, &cublasLtMatmulPreferenceDestroy);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(product_.workspace_limit));
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  const auto align = [&](cublasLtMatmulPreferenceAttributes_t attribute, std::int64_t bytes) {
    set(preference, attribute, static_cast<std::uint32_t>(std::min<std::int64_t>(bytes, 256)));
  };
  align(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product_.b_alignment);
  align(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product_.a_alignment);
  align(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, product_.out_alignment);
  align(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, product_.out_alignment);
  const int wanted = candidates_for(product_);
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(wanted));
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_, operation_, first_, second_, result_, result_,
                                                               preference, wanted, found.data(), &count);
  log_heuristics(product_, status, count, found[0].algo);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  for (int i = 0; i < count; ++i)
    if (found[static_cast<std::size_t>(i)].state == CUBLAS_STATUS_SUCCESS)
      algorithms_.push_back(found[static_cast<std::size_t>(i)]);
  return algorithms_.empty() ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

std::size_t BlasPlan::max_workspace_bytes() const {
  std::size_t largest = 0;
  for (const auto& algorithm : algorithms_) largest = std::max(largest, algorithm.workspaceSize);
  return largest;
}

std::string BlasPlan::packed_algorithm() const {
  std::string packed = fmt::format("{}", algorithms_[chosen_].workspaceSize);
  for (const std::uint64_t word : algorithms_[chosen_].algo.data) packed += fmt::format(" {:x}", word);
  return packed;
}

bool BlasPlan::choose_packed(const std::string& packed) {
  cublasLtMatmulAlgo_t algorithm{};
  const char* at = packed.c_str();
  char* end = nullptr;
  std::strtoull(at, &end, 10);  // the workspace, which the library reports again
  for (std::uint64_t& word : algorithm.data) {
    at = end;
    word = std::strtoull(at, &end, 16);
    if (end == at) return false;
  }
  cublasLtMatmulHeuristicResult_t checked{};
  const cublasStatus_t status =
      cublasLtMatmulAlgoCheck(handle_, operation_, first_, second_, result_, result_, &algorithm, &checked);
  if (status != CUBLAS_STATUS_SUCCESS || checked.workspaceSize > product_.workspace_limit) return false;
  checked.algo = algorithm;
  chosen_ = algorithms_.size();
  algorithms_.push_back(checked);
  return true;
}

std::string BlasPlan::algorithm() const { return text_of(algorithms_[chosen_].algo); }

cublasStatus_t BlasPlan::try_run(cudaStream_t stream, const BlasArgs& args) {
  set_pointers(args);
  const Scalar alpha(product_.a, product_.alpha), beta(product_.a, product_.beta);
  const cublasLtMatmulHeuristicResult_t& chosen = algorithms_[chosen_];
  return cublasLtMatmul(handle_, operation_, alpha.bytes, args.b, first_, args.a, second_, beta.bytes, args.out,
                        result_, args.out, result_, &chosen.algo, args.workspace, chosen.workspaceSize, stream);
}

void BlasPlan::run(cudaStream_t stream, const BlasArgs& args) { ASSAY_CUBLASLT(try_run(stream, args)); }

Made<BlasPlan> make_blas_plan(const BlasProduct& product) {
  std::unique_ptr<BlasPlan> plan(new BlasPlan());
  plan->product_ = product;
  plan->handle_ = handle_of_current_device();
  plan->describe();
  const cublasStatus_t status = plan->find_algorithms();
  if (status == CUBLAS_STATUS_SUCCESS) return plan;
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
      status == CUBLAS_STATUS_ARCH_MISMATCH)
    return Made<BlasPlan>::no(fmt::format("cuBLASLt has no {} x {} into {} of {} x {} x {}{} ({})", name_of(product.a),
                                          name_of(product.b), name_of(product.out), product.m, product.n, product.k,
                                          epilogue_of(product) == CUBLASLT_EPILOGUE_DEFAULT ? "" : " with its epilogue",
                                          cublasLtGetStatusName(status)));
  fail(status, "cublasLtMatmulAlgoGetHeuristic", __FILE__, __LINE__);
}

}  // namespace assay::ops
