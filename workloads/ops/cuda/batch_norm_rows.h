// How batch norm's kernels split (rows, channels) among threads and combine sums per channel: each block handles a
// range of rows and of channels and stores partial sums; one small kernel adds them in double in block order. So the
// result does not depend on timing.
#pragma once

#include "harness/device/cuda/reduce.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace assay::ops {

struct BatchNormRows {
  static constexpr int threads = 256;  // per block
  static constexpr int max_across = 32;

  std::int64_t rows = 0;
  std::int64_t channels = 0;
  int width = 1;                    // channels per thread
  int across = 1;                   // threads across a row, a power of two
  std::int64_t rows_per_block = 1;  // per block; the last may have fewer
  unsigned blocks_across = 1;       // across a row
  unsigned blocks_down = 1;

  // Blocks for one wave, with `resident` of them on each of `units` multiprocessors.
  static BatchNormRows of(std::int64_t rows, std::int64_t channels, int width, int units, int resident) {
    constexpr std::int64_t min_rows = 4;  // per thread, so that loads overlap
    BatchNormRows r;
    r.rows = rows;
    r.channels = channels;
    r.width = width;
    const std::int64_t vectors = channels / width;
    while (r.across < max_across && r.across < vectors) r.across *= 2;
    r.blocks_across = static_cast<unsigned>((vectors + r.across - 1) / r.across);
    const std::int64_t down = threads / r.across;
    const std::int64_t wave = std::max<std::int64_t>(1, std::int64_t{units} * resident / r.blocks_across);
    const std::int64_t useful = std::max<std::int64_t>(1, rows / (down * min_rows));
    const std::int64_t each = (rows + std::min(wave, useful) - 1) / std::min(wave, useful);
    r.rows_per_block = (each + down - 1) / down * down;
    r.blocks_down = static_cast<unsigned>((rows + r.rows_per_block - 1) / r.rows_per_block);
    return r;
  }

  // Partial sums: (blocks_down, 2, channels) floats.
  std::size_t partial_floats() const { return std::size_t{blocks_down} * 2 * static_cast<std::size_t>(channels); }

  dim3 grid() const { return {blocks_across, blocks_down}; }
};

// The part of one thread, with N channels per thread: channels [channel, channel + N) of the rows first, first + down,
// ... below end. Neighbouring threads access neighbouring memory. `all` is passed by value.
template <int N>
struct BatchNormShare {
  __device__ explicit BatchNormShare(const BatchNormRows& all)
      : down(BatchNormRows::threads / all.across),
        row(static_cast<int>(threadIdx.x) / all.across),
        channel((std::int64_t{blockIdx.x} * all.across + static_cast<int>(threadIdx.x) % all.across) * N),
        first(std::int64_t{blockIdx.y} * all.rows_per_block + row),
        end(min(all.rows, (std::int64_t{blockIdx.y} + 1) * all.rows_per_block)),
        active(channel < all.channels) {}
  // The thread's number of rows.
  __device__ int count() const { return first < end ? static_cast<int>((end - first + down - 1) / down) : 0; }

  int down;
  int row;
  std::int64_t channel;
  std::int64_t first;
  std::int64_t end;
  bool active;
};

// Adds `blocks` partials (blocks, 2, channels) per channel: a block of 32 x 32 threads handles 32 channels, each of its
// warps every 32nd partial. `term(block, one, two)` maps a partial's two numbers to the terms to add; the first warp's
// threads get the result, one channel each.
template <typename Term>
__device__ cuda::Two<double> sum_of_partials(const float* partials, int blocks, std::int64_t channels, Term term) {
  constexpr int warps = 32;
  __shared__ double first[warps][cuda::warp_threads], second[warps][cuda::warp_threads];
  const int lane = static_cast<int>(threadIdx.x) % cuda::warp_threads;
  const int warp = static_cast<int>(threadIdx.x) / cuda::warp_threads;
  const std::int64_t channel = std::int64_t{blockIdx.x} * cuda::warp_threads + lane;
  cuda::Two<double> sum{0, 0};
  if (channel < channels) {
#pragma unroll 4
    for (int i = warp; i < blocks; i += warps) {
      const float* at = partials + 2 * i * channels + channel;
      const cuda::Two<double> more = term(i, at[0], at[channels]);
      sum.a += more.a;
      sum.b += more.b;
    }
  }
  first[warp][lane] = sum.a;
  second[warp][lane] = sum.b;
  __syncthreads();
#pragma unroll
  for (int half = warps / 2; half > 0; half /= 2) {
    if (warp < half) {
      first[warp][lane] += first[warp + half][lane];
      second[warp][lane] += second[warp + half][lane];
    }
    __syncthreads();
  }
  return {first[0][lane], second[0][lane]};
}
constexpr int partial_threads = 1024;

// The factor of x - mean. Forward and backward compute it identically, so both get the same y from x; if cuDNN did the
// forward pass, they may disagree on y > 0 if y is zero up to rounding.
__device__ __forceinline__ float batch_norm_factor(float scale, float inverse_deviation) {
  return __fmul_rn(scale, inverse_deviation);
}
__device__ __forceinline__ float batch_norm_value(float x, float mean, float factor, float shift) {
  return __fmaf_rn(__fsub_rn(x, mean), factor, shift);
}

}  // namespace assay::ops
