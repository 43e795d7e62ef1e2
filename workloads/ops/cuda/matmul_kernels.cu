// Byte transposes, biases and row sums for cuBLASLt's products.
#include "workloads/ops/cuda/matmul_kernels.h"

#include "harness/device/cuda/launch.h"
#include "harness/device/cuda/reduce.h"
#include "harness/device/cuda/vector.h"
#include "workloads/ops/cuda/column_sums.h"
#include "workloads/ops/cuda/cuda_op.h"

#include <algorithm>
#include <type_traits>

namespace assay::ops {

namespace {

using cuda::Compute;

constexpr int threads = 256;
constexpr const char* kernels = "kernel for products";  // for types without any

// A tile of 64 x 64 through shared memory; four bytes per thread if rows are whole words.
constexpr int tile = 64;

__global__ void transpose_tiles(const std::uint8_t* from, std::uint8_t* to, std::int64_t rows, std::int64_t columns,
                                std::int64_t stride, bool words) {
  __shared__ std::uint8_t kept[tile][tile + 4];
  const auto across = static_cast<unsigned>((columns + tile - 1) / tile);
  const unsigned down = blockIdx.x / across;
  const std::int64_t row = static_cast<std::int64_t>(down) * tile;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x - down * across) * tile;
  const int x = static_cast<int>(threadIdx.x) % 16 * 4, y = static_cast<int>(threadIdx.x) / 16;
  for (int i = y; i < tile; i += threads / 16) {
    if (row + i >= rows) break;
    const std::uint8_t* line = from + (row + i) * stride + column + x;
    if (words && column + x + 4 <= columns) {
      const uchar4 four = *reinterpret_cast<const uchar4*>(line);
      kept[i][x] = four.x, kept[i][x + 1] = four.y, kept[i][x + 2] = four.z, kept[i][x + 3] = four.w;
    } else {
      for (int j = 0; j < 4; ++j)
        if (column + x + j < columns) kept[i][x + j] = line[j];
    }
  }
  __syncthreads();
  for (int i = y; i < tile; i += threads / 16) {
    if (column + i >= columns) break;
    std::uint8_t* line = to + (column + i) * rows + row + x;
    if (words && row + x + 4 <= rows)
      *reinterpret_cast<uchar4*>(line) = {kept[x][i], kept[x + 1][i], kept[x + 2][i], kept[x + 3][i]};
    else
      for (int j = 0; j < 4; ++j)
        if (row + x + j < rows) line[j] = kept[x + j][i];
  }
}

template <typename To, typename From>
__global__ void cast(const From* from, To* to, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) to[i] = cuda::narrow<To>(static_cast<Compute<To>>(cuda::widen(from[i])));
}

template <typename T>
__global__ void add_to_rows(T* out, const T* bias, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  const Compute<T> value = cuda::widen(bias[column]);
  for (std::int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    T& element = out[row * stride + column];
    element = cuda::narrow<T>(cuda::widen(element) + value);
  }
}

// For a stored as (K, M): 32 threads across the columns, 8 down the rows of this block's part.
constexpr int lines = threads / 32;

template <typename T, int N>
__global__ void column_sums(const T* a, Compute<T>* partial, std::int64_t columns, std::int64_t rows,
                            std::int64_t stride) {
  using C = Compute<T>;
  __shared__ C kept[lines][32 * N + 1];
  const int lane = static_cast<int>(threadIdx.x) % 32, line = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.x) * 32 + lane) * N;
  const std::int64_t begin = rows * blockIdx.y / gridDim.y, end = rows * (blockIdx.y + 1) / gridDim.y;
  C sums[N] = {};
  if (column < columns) {
#pragma unroll 4
    for (std::int64_t row = begin + line; row < end; row += lines) {
      const cuda::Vector<C, N> values = cuda::load_wide<N>(a + row * stride + column);
#pragma unroll
      for (int i = 0; i < N; ++i) sums[i] += values.lane[i];
    }
  }
#pragma unroll
  for (int i = 0; i < N; ++i) kept[line][lane * N + i] = sums[i];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < 32 * N; i += threads) {
    const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * 32 * N + i;
    if (at >= columns) break;
    C sum = kept[0][i];
#pragma unroll
    for (int other = 1; other < lines; ++other) sum += kept[other][i];
    partial[blockIdx.y * columns + at] = sum;
  }
}

// Adds the parts in double; column_sums.h does so in float.
__global__ void join_parts(const double* partial, double* sums, std::int64_t columns, int parts, bool accumulate) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  double sum = 0;
#pragma unroll 8
  for (int part = 0; part < parts; ++part) sum += partial[part * columns + column];
  sums[column] = accumulate ? sums[column] + sum : sum;
}

// For a stored as (M, K): one warp per row.
template <typename T>
__global__ void row_sums(const T* a, Compute<T>* sums, std::int64_t rows, std::int64_t columns, std::int64_t stride,
                         bool accumulate) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * lines + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Compute<T> sum = 0;
  if (row < rows)
    for (std::int64_t i = lane; i < columns; i += 32) sum += cuda::widen(a[row * stride + i]);
  sum = cuda::warp_sum(sum);
  if (row < rows && lane == 0) sums[row] = accumulate ? sums[row] + sum : sum;
}

}  // namespace

void transpose_bytes(const void* from, void* to, std::int64_t rows, std::int64_t columns, std::int64_t stride,
                     cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((columns + tile - 1) / tile * ((rows + tile - 1) / tile));
  const bool words = rows % 4 == 0 && stride % 4 == 0 && cuda::aligned(from, to);
  cuda::launch(transpose_tiles, blocks, threads, 0, stream, static_cast<const std::uint8_t*>(from),
               static_cast<std::uint8_t*>(to), rows, columns, stride, words);
}

void cast_bias(const void* from, DType from_type, void* to, DType to_type, std::int64_t count, cudaStream_t stream) {
  with_stored_type(from_type, kernels, [&]<typename From>() {
    with_stored_type(to_type, kernels, [&]<typename To>() {
      cuda::launch(cast<To, From>, static_cast<unsigned>((count + threads - 1) / threads), threads, 0, stream,
                   static_cast<const From*>(from), static_cast<To*>(to), count);
    });
  });
}

void add_bias(void* out, const void* bias, DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t stride,
              cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((columns + threads - 1) / threads), blocks_for(rows, 8, 65535));
  with_stored_type(dtype, kernels, [&]<typename T>() {
    cuda::launch(add_to_rows<T>, grid, threads, 0, stream, static_cast<T*>(out), static_cast<const T*>(bias), rows,
                 columns, stride);
  });
}

RowSums::RowSums(DType dtype, bool transposed, std::int64_t m, std::int64_t k, std::int64_t stride)
    : dtype_(dtype), transposed_(transposed), m_(m), k_(k), stride_(stride) {
  // Enough blocks to fill a large GPU a few times, each with some rows to add.
  const std::int64_t across = (m + 255) / 256;
  parts_ = static_cast<int>(std::clamp<std::int64_t>(1024 / across, 1, std::max<std::int64_t>(1, k / (4 * lines))));
}

std::size_t RowSums::workspace_bytes() const {
  const std::size_t element = dtype_ == DType::f64 ? 8 : 4;
  return transposed_ ? static_cast<std::size_t>(parts_) * static_cast<std::size_t>(m_) * element : 0;
}

void RowSums::run(const void* a, void* sums, void* workspace, bool accumulate, cudaStream_t stream) const {
  with_stored_type(dtype_, kernels, [&]<typename T>() {
    using C = Compute<T>;
    const auto* from = static_cast<const T*>(a);
    auto* to = static_cast<C*>(sums);
    if (!transposed_)
      return cuda::launch(row_sums<T>, static_cast<unsigned>((m_ + lines - 1) / lines), threads, 0, stream, from, to,
                          m_, k_, stride_, accumulate);
    auto* partial = static_cast<C*>(workspace);
    constexpr int wide = cuda::lanes<T>;
    const bool whole = m_ % wide == 0 && stride_ % wide == 0 && cuda::aligned(a);
    const auto across = [&](int each) { return static_cast<unsigned>((m_ + 32 * each - 1) / (32 * each)); };
    if (whole)
      cuda::launch(column_sums<T, wide>, dim3(across(wide), static_cast<unsigned>(parts_)), threads, 0, stream, from,
                   partial, m_, k_, stride_);
    else
      cuda::launch(column_sums<T, 1>, dim3(across(1), static_cast<unsigned>(parts_)), threads, 0, stream, from, partial,
                   m_, k_, stride_);
    if constexpr (std::is_same_v<C, double>)
      cuda::launch(join_parts, static_cast<unsigned>((m_ + threads - 1) / threads), threads, 0, stream, partial, to, m_,
                   parts_, accumulate);
    else
      enqueue_column_sums({.partials = partial,
                           .parts = parts_,
                           .row_stride = m_,
                           .columns = m_,
                           .first = to,
                           .accumulate = accumulate},
                          stream);
  });
}

}  // namespace assay::ops
