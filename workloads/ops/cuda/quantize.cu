// Rounds to 8-bit floats, plain and transposed in one pass over memory, and updates the scales.
#include "harness/device/cuda/launch.h"
#include "harness/device/cuda/native.h"
#include "harness/device/cuda/reduce.h"
#include "harness/device/cuda/vector.h"
#include "workloads/ops/cuda/column_sums.h"
#include "workloads/ops/cuda/cuda_op.h"
#include "workloads/ops/cuda/cuda_ops.h"
#include "workloads/ops/functors/scale.h"

namespace assay::ops {

namespace {

constexpr int threads = 256;
constexpr int wide = 8;                                // neighbours in a row that a thread reads at once
constexpr int stacked = 4;                             // rows that it reads: one word of the transposed tile per column
constexpr int across = 8;                              // threads per row
constexpr int tile_columns = across * wide;            // 64
constexpr int tile_rows = threads / across * stacked;  // 128
constexpr int words = tile_rows / stacked;             // per column of the transposed tile
constexpr int group = 16 / stacked;                    // words stored at once

// The position of a word in a column of the transposed tile: swizzled by the thread that produced the column, so that a
// warp's 32 words, from 8 columns, are in 32 banks for writes and reads.
__device__ __forceinline__ int place_of(int word, int lane) { return word ^ (lane * group); }

using Transposed = std::uint32_t[tile_columns][words];

// Processes a thread's rows and columns of a tile. `inside`: all of them are in the matrix and aligned to 16 bytes, so
// that all loads are in flight before the first is used. Returns the bits of the largest magnitude, and adds to the
// columns' sums.
template <bool inside, bool sums, typename From, typename To>
__device__ __forceinline__ unsigned round_patch(const From* x, To* y, bool transpose, Transposed& kept,
                                                std::int64_t rows, std::int64_t columns, std::int64_t row,
                                                std::int64_t column, float factor, float* sum) {
  const int lane = static_cast<int>(threadIdx.x) % across, line = static_cast<int>(threadIdx.x) / across;
  cuda::Packed<From, wide> in[stacked];
#pragma unroll
  for (int s = 0; s < stacked; ++s) {
    const From* from = x + (row + s) * columns + column;
    if constexpr (inside) {
      in[s] = cuda::load<wide>(from);
    } else {
      cuda::Vector<From, wide> each = {};
#pragma unroll
      for (int j = 0; j < wide; ++j)
        if (row + s < rows && column + j < columns) each.lane[j] = from[j];
      in[s] = cuda::packed(each);
    }
  }
  unsigned largest = 0;
  cuda::Packed<To, wide> out[stacked];
#pragma unroll
  for (int s = 0; s < stacked; ++s) {
    cuda::Vector<float, wide> values = cuda::widened(in[s]);
#pragma unroll
    for (int j = 0; j < wide; ++j) {
      const unsigned bits = __float_as_uint(fabsf(values.lane[j]));
      largest = largest > bits ? largest : bits;
      if constexpr (sums) sum[j] += values.lane[j];
      values.lane[j] *= factor;
    }
    out[s] = cuda::narrowed<To>(values);
    if (!y) continue;
    To* to = y + (row + s) * columns + column;
    if constexpr (inside) {
      cuda::store(to, out[s]);
    } else {
#pragma unroll
      for (int j = 0; j < wide; ++j)
        if (row + s < rows && column + j < columns) to[j] = out[s][j];
    }
  }
  if (transpose) {
#pragma unroll
    for (int j = 0; j < wide; ++j) {
      const cuda::Vector<To, stacked> word{{out[0][j], out[1][j], out[2][j], out[3][j]}};
      memcpy(&kept[lane * wide + j][place_of(line, lane)], &word, sizeof(word));
    }
  }
  return largest;
}

// One tile of 128 x 64 per block. Combines the largest magnitude by an atomic maximum of bit patterns, which for
// non-negative numbers are ordered like the numbers (NaN above all): independent of the order of blocks. With `sums`, a
// block writes its columns' sums to its row of `partials`.
template <typename From, typename To, bool sums>
__global__ void __launch_bounds__(threads)
    quantize_tiles(const From* x, To* y, To* transposed, std::int64_t rows, std::int64_t columns, const float* scale,
                   unsigned* amax, float* partials, bool plain_words, bool turned_words) {
  __shared__ __align__(16) Transposed kept;
  __shared__ int joined[32];
  __shared__ float added[sums ? threads / cuda::warp_threads : 1][tile_columns];
  const auto tiles_across = static_cast<unsigned>((columns + tile_columns - 1) / tile_columns);
  const unsigned down = blockIdx.x / tiles_across;
  const std::int64_t row = static_cast<std::int64_t>(down) * tile_rows;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x - down * tiles_across) * tile_columns;
  const int lane = static_cast<int>(threadIdx.x) % across, line = static_cast<int>(threadIdx.x) / across;
  const std::int64_t own_row = row + line * stacked, own_column = column + lane * wide;
  const float factor = *scale;
  float sum[sums ? wide : 1] = {};
  const bool inside = plain_words && own_row + stacked <= rows && own_column + wide <= columns;
  const unsigned largest = inside ? round_patch<true, sums>(x, y, transposed != nullptr, kept, rows, columns, own_row,
                                                            own_column, factor, sum)
                                  : round_patch<false, sums>(x, y, transposed != nullptr, kept, rows, columns, own_row,
                                                             own_column, factor, sum);
  // Magnitudes have no sign bit, so they compare correctly as signed integers.
  const int most = cuda::block_reduce(static_cast<int>(largest), cuda::Largest(), 0, joined);
  // The stored maximum only rises: most blocks find theirs is not above it.
  if (threadIdx.x == 0 && amax && static_cast<unsigned>(most) > __ldcg(amax))
    atomicMax(amax, static_cast<unsigned>(most));
  if constexpr (sums) {
    // Lanes `across` apart have the same columns, warps have different rows.
#pragma unroll
    for (int j = 0; j < wide; ++j) {
#pragma unroll
      for (int mask = across; mask < cuda::warp_threads; mask *= 2) sum[j] += cuda::exchanged(sum[j], mask);
    }
    const int warp = static_cast<int>(threadIdx.x) / cuda::warp_threads;
    if (static_cast<int>(threadIdx.x) % cuda::warp_threads < across) {
#pragma unroll
      for (int j = 0; j < wide; ++j) added[warp][lane * wide + j] = sum[j];
    }
  }
  __syncthreads();
  if constexpr (sums) {
    const int i = static_cast<int>(threadIdx.x);
    if (i < tile_columns && column + i < columns) {
      float total = 0;
#pragma unroll
      for (int warp = 0; warp < threads / cuda::warp_threads; ++warp) total += added[warp][i];
      partials[down * columns + column + i] = total;
    }
  }
  if (!transposed) return;
  // A column of the tile is 128 bytes, eight threads' words.
  constexpr int groups = words / group;
  const int first = static_cast<int>(threadIdx.x) % groups;
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x) / groups; i < tile_columns; i += threads / groups) {
    if (column + i >= columns) break;
    const std::int64_t begin = row + first * 16;
    const cuda::Packed<To, 16> bytes =
        cuda::load<16>(reinterpret_cast<const To*>(&kept[i][place_of(first * group, i / wide)]));
    To* to = transposed + (column + i) * rows + begin;
    if (turned_words && begin + 16 <= rows) {
      cuda::store(to, bytes);
    } else {
#pragma unroll
      for (int j = 0; j < 16; ++j)
        if (begin + j < rows) to[j] = bytes[j];
    }
  }
}

__global__ void update_scales(const float* amax, float* history, const float* largest, float* scale, float* inverse,
                              StepState* state, std::int64_t tensors, std::int64_t length, int margin) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= tensors) return;
  float* own = history + i * length;
  float most = functors::DelayedScale::history_entry(amax[i]);
  const float latest = most;
  for (std::int64_t at = 0; at + 1 < length; ++at) {
    own[at] = own[at + 1];
    most = fmaxf(most, own[at]);
  }
  own[length - 1] = latest;
  const float value = functors::DelayedScale()(most, largest[i], margin);
  scale[i] = value;
  inverse[i] = 1.0f / value;
  if (state && functors::DelayedScale::overflowed(amax[i])) state->found_infinity = 1;
}

std::int64_t tiles(std::int64_t elements, int tile) { return (elements + tile - 1) / tile; }

template <typename From, typename To, bool sums>
void enqueue(const QuantizeDesc& d, const Quantize::Args& args, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(tiles(d.columns, tile_columns) * tiles(d.rows, tile_rows));
  const bool plain_words = d.columns % wide == 0 && cuda::aligned(args.x, args.y);
  const bool turned_words = d.rows % 16 == 0 && cuda::aligned(args.y_transposed);
  auto* partials = static_cast<float*>(args.workspace);
  cuda::launch(quantize_tiles<From, To, sums>, blocks, threads, 0, stream, static_cast<const From*>(args.x),
               d.plain ? static_cast<To*>(args.y) : nullptr,
               d.transposed ? static_cast<To*>(args.y_transposed) : nullptr, d.rows, d.columns, args.scale,
               reinterpret_cast<unsigned*>(args.amax), partials, plain_words, turned_words);
  if constexpr (sums)
    enqueue_column_sums({.partials = partials,
                         .parts = tiles(d.rows, tile_rows),
                         .row_stride = d.columns,
                         .columns = d.columns,
                         .first = args.column_sums,
                         .accumulate = d.accumulate},
                        stream);
}

class CudaQuantize final : public Quantize {
 public:
  explicit CudaQuantize(const QuantizeDesc& desc) : d_(desc) {}
  std::string implementation() const override { return "tiles"; }
  std::string isa() const override { return "cuda"; }
  std::size_t workspace_bytes() const override {
    return d_.column_sums ? static_cast<std::size_t>(tiles(d_.rows, tile_rows) * d_.columns) * sizeof(float) : 0;
  }

  void run(Stream& to, const Args& args) override {
    with_type(d_.from, [&]<typename From>() {
      if (d_.to == DType::fp8_e4m3)
        round<From, __nv_fp8_e4m3>(args, cuda::native(to));
      else
        round<From, __nv_fp8_e5m2>(args, cuda::native(to));
    });
  }

 private:
  template <typename From, typename To>
  void round(const Args& args, cudaStream_t stream) {
    if (d_.column_sums)
      enqueue<From, To, true>(d_, args, stream);
    else
      enqueue<From, To, false>(d_, args, stream);
  }

  QuantizeDesc d_;
};

class CudaScaleUpdate final : public ScaleUpdate {
 public:
  explicit CudaScaleUpdate(const ScaleUpdateDesc& desc) : d_(desc) {}
  std::string implementation() const override { return "thread a tensor"; }
  std::string isa() const override { return "cuda"; }

  void run(Stream& to, const Args& args) override {
    cuda::launch(update_scales, static_cast<unsigned>((d_.tensors + threads - 1) / threads), threads, 0,
                 cuda::native(to), args.amax, args.history, args.largest, args.scale, args.inverse, args.state,
                 d_.tensors, d_.length, d_.margin);
  }

 private:
  ScaleUpdateDesc d_;
};

}  // namespace

template <>
Made<Quantize> make_cuda(Device&, const QuantizeDesc& d) {
  return std::unique_ptr<Quantize>(std::make_unique<CudaQuantize>(d));
}

template <>
Made<ScaleUpdate> make_cuda(Device&, const ScaleUpdateDesc& d) {
  return std::unique_ptr<ScaleUpdate>(std::make_unique<CudaScaleUpdate>(d));
}

}  // namespace assay::ops
