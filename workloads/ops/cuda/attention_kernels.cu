// The masked softmax of attention and its gradient: one warp per row, 16-byte accesses, sums in a fixed order.
#include "workloads/ops/cuda/attention_kernels.h"

#include "harness/device/cuda/launch.h"
#include "harness/device/cuda/reduce.h"
#include "harness/device/cuda/vector.h"
#include "workloads/ops/cuda/cuda_op.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>

namespace assay::ops {

namespace {

constexpr int warps = 4, threads = warps * cuda::warp_threads;
constexpr int width = 8;                            // elements per lane at a time
constexpr int stride = width * cuda::warp_threads;  // ... and per warp

// A warp's row and the number of keys visible to its query.
struct Row {
  std::int64_t index;    // of the row of scores
  std::int64_t head;     // within the sequence
  std::int64_t query;    // within the sequence
  std::int64_t visible;  // keys [0, visible)
  int lane;
};

__device__ bool row_of_warp(const AttentionRows& rows, Row& row) {
  row.lane = static_cast<int>(threadIdx.x) % cuda::warp_threads;
  row.index = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / cuda::warp_threads;
  if (row.index >= rows.heads * rows.queries) return false;
  row.head = rows.first_head + row.index / rows.queries;
  row.query = rows.first_query + row.index % rows.queries;
  const std::int64_t length = rows.lengths ? rows.lengths[rows.sequence] : rows.seq;
  row.visible = row.query >= length ? 0 : rows.causal ? row.query + 1 : length;
  if (row.visible > rows.keys) row.visible = rows.keys;
  return true;
}

struct Largest {
  template <typename S>
  __device__ S operator()(S x, S y) const {
    return y > x ? y : x;
  }
};

template <typename T>
__global__ void __launch_bounds__(threads)
    softmax(AttentionRows rows, const cuda::Compute<T>* scores, T* probabilities, cuda::Compute<T>* log_sum_exp) {
  using S = cuda::Compute<T>;
  Row row;
  if (!row_of_warp(rows, row)) return;
  const S* x = scores + row.index * rows.row_stride;
  const S scale = static_cast<S>(rows.scale), none = -static_cast<S>(INFINITY);
  S largest = none, sum = 0;
  for (std::int64_t j = row.lane * width; j < row.visible; j += stride) {
    auto values = cuda::load_wide<width>(x + j);
    S top = largest;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      values.lane[i] = j + i < row.visible ? values.lane[i] * scale : none;
      top = Largest()(top, values.lane[i]);
    }
    // If all are minus infinity or NaN, subtract nothing; NaN persists.
    const S shift = top == none ? 0 : top;
    sum *= exp(largest - shift);
    largest = top;
#pragma unroll
    for (int i = 0; i < width; ++i) sum += exp(values.lane[i] - shift);
  }
  const S top = cuda::warp_reduce(largest, Largest());
  const S shift = top == none ? 0 : top;
  sum = cuda::warp_sum(largest == none ? sum : sum * exp(largest - shift));
  const S inverse = row.visible > 0 ? 1 / sum : 0;
  if (row.lane == 0)
    log_sum_exp[(rows.sequence * rows.total_heads + row.head) * rows.seq + row.query] =
        row.visible > 0 ? shift + log(sum) : 0;
  T* p = probabilities + row.index * rows.row_stride;
  for (std::int64_t j = row.lane * width; j < rows.keys; j += stride) {
    auto values = cuda::load_wide<width>(x + j);
#pragma unroll
    for (int i = 0; i < width; ++i)
      values.lane[i] = j + i < row.visible ? exp(values.lane[i] * scale - shift) * inverse : 0;
    cuda::store(p + j, cuda::narrowed<T>(values));
  }
}

template <typename T>
__global__ void __launch_bounds__(threads)
    softmax_gradient(AttentionRows rows, const cuda::Compute<T>* scores, const cuda::Compute<T>* dprobabilities,
                     const T* out, const T* dout, const cuda::Compute<T>* log_sum_exp, T* probabilities, T* dscores) {
  using S = cuda::Compute<T>;
  Row row;
  if (!row_of_warp(rows, row)) return;
  const std::int64_t token = (rows.sequence * rows.seq + row.query) * rows.total_heads + row.head;
  S delta = 0;
  for (std::int64_t i = row.lane; i < rows.head_dim; i += cuda::warp_threads)
    delta += cuda::widen(out[token * rows.head_dim + i]) * cuda::widen(dout[token * rows.head_dim + i]);
  delta = cuda::warp_sum(delta);
  const S sum = log_sum_exp[(rows.sequence * rows.total_heads + row.head) * rows.seq + row.query];
  const S scale = static_cast<S>(rows.scale);
  const std::int64_t begin = row.index * rows.row_stride;
  for (std::int64_t j = row.lane * width; j < rows.keys; j += stride) {
    auto p = cuda::load_wide<width>(scores + begin + j);
    auto ds = cuda::load_wide<width>(dprobabilities + begin + j);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const bool seen = j + i < row.visible;
      p.lane[i] = seen ? exp(p.lane[i] * scale - sum) : 0;
      ds.lane[i] = seen ? p.lane[i] * (ds.lane[i] - delta) * scale : 0;
    }
    cuda::store(probabilities + begin + j, cuda::narrowed<T>(p));
    cuda::store(dscores + begin + j, cuda::narrowed<T>(ds));
  }
}

template <typename T>
__global__ void store_sums(const float* sums, std::int64_t heads, std::int64_t seq, std::int64_t head_dim, T* to,
                           std::int64_t to_stride) {
  const std::int64_t columns = heads * head_dim, token = blockIdx.x;
  for (std::int64_t column = threadIdx.x; column < columns; column += blockDim.x) {
    const std::int64_t head = column / head_dim, i = column % head_dim;
    to[token * to_stride + column] = cuda::narrow<T>(sums[(head * seq + token) * head_dim + i]);
  }
}

__global__ void zero_masked(unsigned char* rows, std::int64_t seq, std::int64_t bytes, std::int64_t row_bytes,
                            const std::int32_t* lengths) {
  const std::int64_t sequence = blockIdx.y, token = blockIdx.x;
  if (token < lengths[sequence]) return;
  auto* to = reinterpret_cast<uint4*>(rows + (sequence * seq + token) * row_bytes);
  for (std::int64_t i = threadIdx.x; i < bytes / static_cast<std::int64_t>(sizeof(uint4)); i += blockDim.x)
    to[i] = uint4{0, 0, 0, 0};
}

__global__ void zero_masked_sums(float* sums, std::int64_t heads, std::int64_t seq, const std::int32_t* lengths) {
  const std::int64_t row = blockIdx.x, length = lengths[row / heads];
  for (std::int64_t t = (length > 0 ? length : 0) + static_cast<std::int64_t>(threadIdx.x); t < seq; t += blockDim.x)
    sums[row * seq + t] = 0;
}

unsigned grid_of(const AttentionRows& rows) {
  return static_cast<unsigned>((rows.heads * rows.queries + warps - 1) / warps);
}

}  // namespace

void attention_softmax(DType dtype, const AttentionRows& rows, const void* scores, void* probabilities,
                       void* log_sum_exp, cudaStream_t stream) {
  with_stored_type(dtype, "attention", [&]<typename T>() {
    using S = cuda::Compute<T>;
    cuda::launch(softmax<T>, grid_of(rows), threads, 0, stream, rows, static_cast<const S*>(scores),
                 static_cast<T*>(probabilities), static_cast<S*>(log_sum_exp));
  });
}

void attention_softmax_gradient(DType dtype, const AttentionRows& rows, const AttentionGradientArrays& arrays,
                                cudaStream_t stream) {
  with_stored_type(dtype, "attention", [&]<typename T>() {
    using S = cuda::Compute<T>;
    cuda::launch(softmax_gradient<T>, grid_of(rows), threads, 0, stream, rows, static_cast<const S*>(arrays.scores),
                 static_cast<const S*>(arrays.dprobabilities), static_cast<const T*>(arrays.out),
                 static_cast<const T*>(arrays.dout), static_cast<const S*>(arrays.log_sum_exp),
                 static_cast<T*>(arrays.probabilities), static_cast<T*>(arrays.dscores));
  });
}

void attention_store_sums(DType dtype, const float* sums, std::int64_t heads, std::int64_t seq, std::int64_t head_dim,
                          void* to, std::int64_t to_stride, cudaStream_t stream) {
  const auto start = [&](auto* typed) {
    using T = std::remove_pointer_t<decltype(typed)>;
    cuda::launch(store_sums<T>, static_cast<unsigned>(seq), threads, 0, stream, sums, heads, seq, head_dim, typed,
                 to_stride);
  };
  if (dtype == DType::bf16) return start(static_cast<__nv_bfloat16*>(to));
  if (dtype == DType::fp16) return start(static_cast<__half*>(to));
  refuse_type("attention", dtype);
}

void attention_zero_masked(void* rows, std::int64_t batch, std::int64_t seq, std::int64_t bytes, std::int64_t row_bytes,
                           const std::int32_t* lengths, cudaStream_t stream) {
  cuda::launch(zero_masked, dim3(static_cast<unsigned>(seq), static_cast<unsigned>(batch)), threads, 0, stream,
               static_cast<unsigned char*>(rows), seq, bytes, row_bytes, lengths);
}

void attention_zero_masked_sums(float* log_sum_exp, std::int64_t batch, std::int64_t heads, std::int64_t seq,
                                const std::int32_t* lengths, cudaStream_t stream) {
  cuda::launch(zero_masked_sums, static_cast<unsigned>(batch * heads), threads, 0, stream, log_sum_exp, heads, seq,
               lengths);
}

}  // namespace assay::ops
