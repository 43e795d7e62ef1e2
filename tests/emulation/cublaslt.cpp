// A stand-in of cuBLASLt on host memory: the calls that the project makes, as strict as the real one about valid
// combinations of types, layouts, epilogues and alignments (NVIDIA's cuBLAS documentation, "cublasLtMatmul").
#include "tests/emulation/cublaslt_product.h"
#include "tests/emulation/runtime.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

namespace {

using namespace assay::emulation;

struct Preference {
  std::uint64_t workspace = 0;
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t a = 256, b = 256, c = 256, d = 256;  // alignments
};

// Three algorithms: one with whole tiles, which needs 16-byte alignment, a plain one, and one that splits sums.
enum : std::uint64_t { tiled = 66, plain = 21, split = 24 };

BlasOperation& of(cublasLtMatmulDesc_t d) { return *reinterpret_cast<BlasOperation*>(d); }
BlasMatrix& of(cublasLtMatrixLayout_t l) { return *reinterpret_cast<BlasMatrix*>(l); }
Preference& of(cublasLtMatmulPreference_t p) { return *reinterpret_cast<Preference*>(p); }

template <typename T>
cublasStatus_t set(T& to, const void* from, std::size_t bytes) {
  if (!from || bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, sizeof(T));
  return CUBLAS_STATUS_SUCCESS;
}

struct Problem {
  const BlasOperation& op;
  const BlasMatrix &a, &b, &c, &d;

  bool a_transposed() const { return op.transpose_a == CUBLAS_OP_T; }
  bool b_transposed() const { return op.transpose_b == CUBLAS_OP_T; }
  std::int64_t m() const { return d.rows; }
  std::int64_t n() const { return d.columns; }
  std::int64_t k() const { return a_transposed() ? a.rows : a.columns; }
};

bool is_fp8(cudaDataType_t type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }
bool is_half(cudaDataType_t type) { return type == CUDA_R_16F || type == CUDA_R_16BF; }

bool consistent(const Problem& p) {
  for (const BlasMatrix* matrix : {&p.a, &p.b, &p.c, &p.d})
    if (matrix->rows < 1 || matrix->columns < 1 || matrix->leading < matrix->rows || matrix->batch != p.d.batch)
      return false;
  const std::int64_t a_rows = p.a_transposed() ? p.a.columns : p.a.rows;
  const std::int64_t b_rows = p.b_transposed() ? p.b.columns : p.b.rows;
  const std::int64_t b_columns = p.b_transposed() ? p.b.rows : p.b.columns;
  return a_rows == p.m() && b_rows == p.k() && b_columns == p.n() && p.c.type == p.d.type && p.c.rows == p.d.rows &&
         p.c.columns == p.d.columns;
}

bool types_supported(const Problem& p) {
  const cudaDataType_t a = p.a.type, b = p.b.type, d = p.d.type;
  switch (p.op.compute) {
    case CUBLAS_COMPUTE_64F: return p.op.scale == CUDA_R_64F && a == CUDA_R_64F && b == a && d == a;
    case CUBLAS_COMPUTE_32I: return p.op.scale == CUDA_R_32I && a == CUDA_R_8I && b == a && d == CUDA_R_32I;
    case CUBLAS_COMPUTE_32F_FAST_TF32: return p.op.scale == CUDA_R_32F && a == CUDA_R_32F && b == a && d == a;
    case CUBLAS_COMPUTE_32F: break;
    default: return false;
  }
  if (p.op.scale != CUDA_R_32F) return false;
  if (a == CUDA_R_32F) return b == a && d == a;
  if (is_half(a)) return b == a && (d == a || d == CUDA_R_32F);
  return is_fp8(a) && is_fp8(b) && (a == CUDA_R_8F_E4M3 || b == CUDA_R_8F_E4M3) && (is_half(d) || d == CUDA_R_32F);
}

// Tensor cores need 8-bit operands with the terms of a sum contiguous.
bool layouts_supported(const Problem& p) {
  const bool tn = p.a_transposed() && !p.b_transposed();
  if (p.op.compute == CUBLAS_COMPUTE_32I)
    return tn && p.m() % 4 == 0 && p.k() % 4 == 0 && p.a.leading % 4 == 0 && p.b.leading % 4 == 0;
  if (is_fp8(p.a.type))
    return tn && p.m() % 16 == 0 && p.k() % 16 == 0 && p.a.leading % 16 == 0 && p.b.leading % 16 == 0 &&
           p.d.leading * size_of(p.d.type) % 16 == 0;
  return true;
}

bool epilogue_supported(const Problem& p) {
  const std::uint32_t epilogue = p.op.epilogue;
  if (epilogue == CUBLASLT_EPILOGUE_DEFAULT) return true;
  if (p.op.compute == CUBLAS_COMPUTE_64F || p.op.compute == CUBLAS_COMPUTE_32I) return false;
  const bool biased = epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  const bool gelu = epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ||
                    epilogue == CUBLASLT_EPILOGUE_DGELU;
  // Sums of B's columns: in D's type, if D is the bare product.
  const bool sums = epilogue == CUBLASLT_EPILOGUE_BGRADB;
  if (!biased && !gelu && !sums) return false;
  const auto is_output = [&](std::int32_t type) { return type == -1 || type == static_cast<std::int32_t>(p.d.type); };
  if ((biased || sums) && !is_output(p.op.bias_type)) return false;
  if (sums && (is_fp8(p.a.type) || p.d.batch > 1)) return false;
  if (is_fp8(p.a.type) && biased && p.d.type == CUDA_R_32F) return false;
  if (gelu && (!is_output(p.op.aux_type) || p.op.aux_leading % 8 != 0 || p.op.aux_leading < p.m() ||
               p.op.aux_batch_stride % 8 != 0))
    return false;
  return true;
}

// What the heuristics offer and cublasLtMatmul() then rejects, as documented ("doesn't fully guarantee algo will run"):
// here GELU's gradient after an 8-bit product.
bool refused_at_run(const Problem& p) { return is_fp8(p.a.type) && p.op.epilogue == CUBLASLT_EPILOGUE_DGELU; }

cublasStatus_t check(const Problem& p) {
  if (!consistent(p)) return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_fp8(p.a.type) && (p.op.a_scale || p.op.b_scale || p.op.fast_accumulate)) return CUBLAS_STATUS_INVALID_VALUE;
  return types_supported(p) && layouts_supported(p) && epilogue_supported(p) ? CUBLAS_STATUS_SUCCESS
                                                                             : CUBLAS_STATUS_NOT_SUPPORTED;
}

// The operation with its default types, those of the output, filled in.
BlasOperation with_types(const Problem& p) {
  BlasOperation op = p.op;
  if (op.bias_type == -1) op.bias_type = static_cast<std::int32_t>(p.d.type);
  if (op.aux_type == -1) op.aux_type = static_cast<std::int32_t>(p.d.type);
  return op;
}

std::uint64_t workspace_of(std::uint64_t id, const Problem& p) {
  return id == split ? static_cast<std::uint64_t>(2 * p.m() * p.n() * p.d.batch * 4) : 0;
}

// Whether everything that the algorithm reads 16 bytes at a time is aligned to that.
bool tiles_fit(const Problem& p) {
  for (const BlasMatrix* matrix : {&p.a, &p.b, &p.d})
    if (matrix->leading * size_of(matrix->type) % 16 != 0 || matrix->batch_stride * size_of(matrix->type) % 16 != 0)
      return false;
  return true;
}

cublasStatus_t describe(std::uint64_t id, const Problem& p, cublasLtMatmulHeuristicResult_t& result) {
  if (id != tiled && id != plain && id != split) return CUBLAS_STATUS_INVALID_VALUE;
  if (id == tiled && !tiles_fit(p)) return CUBLAS_STATUS_NOT_SUPPORTED;
  result = {};
  result.algo.data[0] = id;
  result.workspaceSize = workspace_of(id, p);
  result.state = CUBLAS_STATUS_SUCCESS;
  result.wavesCount = 1;
  return CUBLAS_STATUS_SUCCESS;
}

double scalar(const void* value, cudaDataType_t type) {
  return type == CUDA_R_64F   ? *static_cast<const double*>(value)
         : type == CUDA_R_32I ? *static_cast<const std::int32_t*>(value)
                              : static_cast<double>(*static_cast<const float*>(value));
}

bool aligned(const void* data, std::uintptr_t bytes) { return reinterpret_cast<std::uintptr_t>(data) % bytes == 0; }

// The epilogue's pointers must be aligned at every run as they were when the heuristics were called.
std::uint64_t epilogue_alignment(const BlasOperation& op) {
  std::uint64_t bytes = 256;
  while (!aligned(op.bias, bytes) || !aligned(op.aux, bytes)) bytes /= 2;
  return bytes;
}

}  // namespace

struct cublasLtContext {};

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext();
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_INTERNAL_ERROR: return "CUBLAS_STATUS_INTERNAL_ERROR";
    default: return "CUBLAS_STATUS_EXECUTION_FAILED";
  }
}

const char* cublasLtGetStatusString(cublasStatus_t status) { return cublasLtGetStatusName(status); }

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  auto made = std::make_unique<BlasMatrix>();
  made->type = type;
  made->rows = static_cast<std::int64_t>(rows);
  made->columns = static_cast<std::int64_t>(columns);
  made->leading = leading;
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(made.release());
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete &of(layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: {
      std::int32_t count = 0;
      const cublasStatus_t status = set(count, value, bytes);
      of(layout).batch = count;
      return status;
    }
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return set(of(layout).batch_stride, value, bytes);
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute, cudaDataType_t scale) {
  auto made = std::make_unique<BlasOperation>();
  made->compute = compute;
  made->scale = scale;
  *desc = reinterpret_cast<cublasLtMatmulDesc_t>(made.release());
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete &of(desc);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  BlasOperation& op = of(desc);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return set(op.transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return set(op.transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(op.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return set(op.bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return set(op.bias_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return set(op.aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return set(op.aux_leading, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE: return set(op.aux_batch_stride, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE: return set(op.aux_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER: return set(op.a_scale, value, bytes);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER: return set(op.b_scale, value, bytes);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM: return set(op.fast_accumulate, value, bytes);
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference());
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete &of(preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    size_t bytes) {
  Preference& p = of(preference);
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return set(p.workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return set(p.reductions, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return set(p.a, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return set(p.b, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return set(p.c, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return set(p.d, value, bytes);
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t results[], int* given) {
  const Problem problem{of(operation), of(a), of(b), of(c), of(d)};
  const Preference& wanted = of(preference);
  *given = 0;
  if (const cublasStatus_t status = check(problem); status != CUBLAS_STATUS_SUCCESS) return status;
  const bool epilogue = problem.op.epilogue != CUBLASLT_EPILOGUE_DEFAULT;
  if (const auto error = scripted("fusion_error"); error && epilogue) {
    if (scripted("fusion_loses_device")) lose_context(cudaErrorIllegalAddress);
    return static_cast<cublasStatus_t>(std::stoi(*error));
  }
  const bool bytes = size_of(problem.a.type) == 1;
  const std::uint32_t least = std::min({wanted.a, wanted.b, wanted.c, wanted.d});
  for (const std::uint64_t id : {tiled, plain, split}) {
    if (*given == asked) break;
    if (id == tiled && least < 16) continue;
    if (bytes && id != tiled) continue;
    if (id == split && (epilogue || !(wanted.reductions & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) ||
                        workspace_of(id, problem) > wanted.workspace))
      continue;
    if (describe(id, problem, results[*given]) != CUBLAS_STATUS_SUCCESS) continue;
    results[*given].algo.data[1] = epilogue_alignment(problem.op);
    ++*given;
  }
  return *given > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algo, cublasLtMatmulHeuristicResult_t* result) {
  const Problem problem{of(operation), of(a), of(b), of(c), of(d)};
  if (const cublasStatus_t status = check(problem); status != CUBLAS_STATUS_SUCCESS) return status;
  return describe(algo->data[0], problem, *result);
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, void* to,
                                                    size_t bytes, size_t* written) {
  const std::size_t size =
      attribute == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID || attribute == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID ? 2 : 4;
  if (bytes != size) return CUBLAS_STATUS_INVALID_VALUE;
  std::uint32_t value = 0;
  if (attribute == CUBLASLT_ALGO_CONFIG_ID) value = static_cast<std::uint32_t>(algo->data[0]);
  if (attribute == CUBLASLT_ALGO_CONFIG_SPLITK_NUM) value = algo->data[0] == split ? 2 : 1;
  std::memcpy(to, &value, size);
  *written = size;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha, const void* A,
                              cublasLtMatrixLayout_t a, const void* B, cublasLtMatrixLayout_t b, const void* beta,
                              const void* C, cublasLtMatrixLayout_t c, void* D, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t* algo, void* workspace, size_t workspace_bytes,
                              cudaStream_t stream) {
  const Problem problem{of(operation), of(a), of(b), of(c), of(d)};
  if (const cublasStatus_t status = check(problem); status != CUBLAS_STATUS_SUCCESS) return status;
  cublasLtMatmulHeuristicResult_t known;
  if (!algo || describe(algo->data[0], problem, known) != CUBLAS_STATUS_SUCCESS) return CUBLAS_STATUS_INVALID_VALUE;
  // "Must be 256B aligned (i.e. lowest 8 bits of address must be 0)."
  if (workspace_bytes < known.workspaceSize || !aligned(workspace, 256)) return CUBLAS_STATUS_INVALID_VALUE;
  if (refused_at_run(problem)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const std::uintptr_t alignment = algo->data[0] == tiled ? 16 : 1;
  for (const auto& [data, layout] :
       {std::pair{A, &problem.a}, std::pair{B, &problem.b}, std::pair{static_cast<const void*>(D), &problem.d}})
    if (!data || !aligned(data, std::max(alignment, static_cast<std::uintptr_t>(size_of(layout->type)))))
      return CUBLAS_STATUS_INVALID_VALUE;
  const BlasOperation& op = problem.op;
  const bool aux = op.epilogue & 128u, biased = op.epilogue & (CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_BGRADB);
  const std::uintptr_t expected = algo->data[1];
  if ((aux && (!op.aux || !aligned(op.aux, expected))) || (biased && (!op.bias || !aligned(op.bias, expected))))
    return CUBLAS_STATUS_INVALID_VALUE;
  const cudaError_t error = enqueue(
      stream, [op = with_types(problem), first = problem.a, second = problem.b, result = problem.d, A, B, C, D,
               alpha = scalar(alpha, op.scale), beta = scalar(beta, op.scale), workspace, used = known.workspaceSize] {
        if (used > 0) std::memset(workspace, 0xff, used);
        multiply(op, alpha, A, first, B, second, beta, C, D, result);
      });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
