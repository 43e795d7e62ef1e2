// How batch norm's kernels share (rows, channels) among threads, and how their sums by channel come together: each
// block takes a stretch of rows and of channels and leaves partial sums, which one small kernel adds up in double in
// the order of the blocks. So nothing depends on who was first.
#pragma once

#include "harness/device/cuda/reduce.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace assay::ops {

struct BatchNormRows {
  static constexpr int threads = 256;  // of a block
  static constexpr int max_across = 32;

  std::int64_t rows = 0;
  std::int64_t channels = 0;
  int width = 1;                   // channels of a thread
  int across = 1;                  // threads side by side in a row, a power of two
  std::int64_t rows_of_block = 1;  // the last block may have fewer
  unsigned blocks_across = 1;      // that share a row
  unsigned blocks_down = 1;

  // Blocks for one wave of `resident` of them on each of `units` multiprocessors.
  static BatchNormRows of(std::int64_t rows, std::int64_t channels, int width, int units, int resident) {
    constexpr std::int64_t min_rows = 4;  // of a thread, so that loads overlap
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
    r.rows_of_block = (each + down - 1) / down * down;
    r.blocks_down = static_cast<unsigned>((rows + r.rows_of_block - 1) / r.rows_of_block);
    return r;
  }

  // Partial sums: (blocks_down, 2, channels) floats.
  std::size_t partial_floats() const { return std::size_t{blocks_down} * 2 * static_cast<std::size_t>(channels); }

  dim3 grid() const { return {blocks_across, blocks_down}; }
};

// What of it a thread of a kernel with N channels a thread has: channels [channel, channel + N) of the rows first,
// first + down, ... below end. Neighbouring threads read neighbouring memory. `all` is BatchNormRows, given by value.
template <int N>
struct BatchNormShare {
  __device__ explicit BatchNormShare(const BatchNormRows& all)
      : down(BatchNormRows::threads / all.across),
        row(static_cast<int>(threadIdx.x) / all.across),
        channel((std::int64_t{blockIdx.x} * all.across + static_cast<int>(threadIdx.x) % all.across) * N),
        first(std::int64_t{blockIdx.y} * all.rows_of_block + row),
        end(min(all.rows, (std::int64_t{blockIdx.y} + 1) * all.rows_of_block)),
        active(channel < all.channels) {}
  // Rows that the thread has.
  __device__ int count() const { return first < end ? static_cast<int>((end - first + down - 1) / down) : 0; }

  int down;
  int row;
  std::int64_t channel;
  std::int64_t first;
  std::int64_t end;
  bool active;
};

// The sums of `blocks` partials (blocks, 2, channels) of a channel: a block of 32 x 32 threads has 32 channels, each of
// its warps every 32nd partial. `term(block, one, two)` gives what is summed of a partial's two numbers; the result is
// in the threads of the first warp, one channel each.
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

// What x - mean is multiplied by. Forward and backward compute it alike, so that both know the same y from x; where
// cuDNN did the forward pass they may take one for above 0 and the other not where y is 0 but for rounding.
__device__ __forceinline__ float batch_norm_factor(float scale, float inverse_deviation) {
  return __fmul_rn(scale, inverse_deviation);
}
__device__ __forceinline__ float batch_norm_value(float x, float mean, float factor, float shift) {
  return __fmaf_rn(__fsub_rn(x, mean), factor, shift);
}

}  // namespace assay::ops
