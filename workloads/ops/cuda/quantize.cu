// Rounding to 8-bit floats, plain and transposed in one pass over memory, and the step of the scales.
#include "harness/device/cuda/launch.h"
#include "harness/device/cuda/native.h"
#include "harness/device/cuda/reduce.h"
#include "harness/device/cuda/vector.h"
#include "workloads/ops/cuda/column_sums.h"
#include "workloads/ops/cuda/cuda_ops.h"
#include "workloads/ops/cuda/refuse.h"
#include "workloads/ops/functors/scale.h"

#include <string>

namespace assay::ops {

namespace {

constexpr int threads = 256;
constexpr int tile = 64;
constexpr int wide = 8;                 // elements that a thread reads at once
constexpr int gap = 16;                 // keeps rows of the transposed tile whole 16-byte words, in other banks
constexpr int across = tile / wide;     // threads of a row of the tile
constexpr int down = threads / across;  // rows that all threads cover at once

// A tile of 64 x 64 a block. The largest magnitude is joined by an atomic maximum of bit patterns, which for numbers
// without a sign have the numbers' order (NaN above all): the same whatever the order of blocks. With `sums` a block
// writes the sums of its columns to its row of `partials`.
template <typename From, typename To, bool sums>
__global__ void __launch_bounds__(threads)
    quantize_tiles(const From* x, To* y, To* turned, std::int64_t rows, std::int64_t columns, const float* scale,
                   unsigned* amax, float* partials, bool plain_words, bool turned_words) {
  __shared__ __align__(16) std::uint8_t kept[tile][tile + gap];
  __shared__ int joined[32];
  __shared__ float added[sums ? threads / cuda::warp_threads : 1][tile];
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.y) * tile;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * tile;
  const int lane = static_cast<int>(threadIdx.x) % across * wide, line = static_cast<int>(threadIdx.x) / across;
  const float factor = *scale;
  unsigned largest = 0;
  float sum[sums ? wide : 1] = {};
#pragma unroll
  for (int pass = 0; pass < tile; pass += down) {
    const int i = pass + line;
    if (row + i >= rows) continue;
    const std::int64_t at = (row + i) * columns + column + lane;
    cuda::Vector<float, wide> values{};
    if (plain_words && column + lane + wide <= columns) {
      values = cuda::load_wide<wide>(x + at);
    } else {
#pragma unroll
      for (int j = 0; j < wide; ++j)
        if (column + lane + j < columns) values.lane[j] = cuda::widen(x[at + j]);
    }
#pragma unroll
    for (int j = 0; j < wide; ++j) {
      const unsigned bits = __float_as_uint(fabsf(values.lane[j]));
      largest = largest > bits ? largest : bits;
      if constexpr (sums) sum[j] += values.lane[j];
      values.lane[j] *= factor;
    }
    const cuda::Vector<To, wide> stored = cuda::narrowed<To>(values);
    if (y) {
      if (plain_words && column + lane + wide <= columns) {
        cuda::store(y + at, stored);
      } else {
#pragma unroll
        for (int j = 0; j < wide; ++j)
          if (column + lane + j < columns) y[at + j] = stored.lane[j];
      }
    }
    if (turned) {
#pragma unroll
      for (int j = 0; j < wide; ++j) memcpy(&kept[lane + j][i], &stored.lane[j], 1);
    }
  }
  // Magnitudes have no sign bit: they compare as signed numbers too.
  const int most = cuda::block_reduce(static_cast<int>(largest), cuda::Largest(), 0, joined);
  if (threadIdx.x == 0 && amax) atomicMax(amax, static_cast<unsigned>(most));
  if constexpr (sums) {
    // Lanes `across` apart hold the same columns, warps other rows.
#pragma unroll
    for (int j = 0; j < wide; ++j) {
#pragma unroll
      for (int mask = across; mask < cuda::warp_threads; mask *= 2) sum[j] += cuda::exchanged(sum[j], mask);
    }
    const int warp = static_cast<int>(threadIdx.x) / cuda::warp_threads;
    if (static_cast<int>(threadIdx.x) % cuda::warp_threads < across) {
#pragma unroll
      for (int j = 0; j < wide; ++j) added[warp][lane + j] = sum[j];
    }
  }
  __syncthreads();
  if constexpr (sums) {
    const int i = static_cast<int>(threadIdx.x);
    if (i < tile && column + i < columns) {
      float total = 0;
#pragma unroll
      for (int warp = 0; warp < threads / cuda::warp_threads; ++warp) total += added[warp][i];
      partials[blockIdx.y * columns + column + i] = total;
    }
  }
  if (!turned) return;
  // A column of the tile is 64 bytes, four threads' words.
  const int i = static_cast<int>(threadIdx.x) / 4, first = static_cast<int>(threadIdx.x) % 4 * 16;
  if (column + i >= columns) return;
  To* to = turned + (column + i) * rows + row + first;
  if (turned_words && row + first + 16 <= rows) {
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(&kept[i][first]);
  } else {
    for (int j = 0; j < 16; ++j)
      if (row + first + j < rows) memcpy(to + j, &kept[i][first + j], 1);
  }
}

__global__ void update_scales(const float* amax, float* history, const float* largest, float* scale, float* inverse,
                              StepState* state, std::int64_t tensors, std::int64_t length, int margin) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= tensors) return;
  float* own = history + i * length;
  float most = functors::DelayedScale::remembered(amax[i]);
  const float latest = most;
  for (std::int64_t at = 0; at + 1 < length; ++at) {
    own[at] = own[at + 1];
    most = fmaxf(most, own[at]);
  }
  own[length - 1] = latest;
  const float value = functors::DelayedScale()(most, largest[i], margin);
  scale[i] = value;
  inverse[i] = 1.0f / value;
  if (state && functors::DelayedScale::betrays(amax[i])) state->found_infinity = 1;
}

std::int64_t tiles(std::int64_t elements) { return (elements + tile - 1) / tile; }

template <typename From, typename To, bool sums>
void enqueue(const QuantizeDesc& d, const Quantize::Args& args, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(tiles(d.columns)), static_cast<unsigned>(tiles(d.rows)));
  const bool plain_words = d.columns % wide == 0 && cuda::aligned(args.x, args.y);
  const bool turned_words = d.rows % 16 == 0 && cuda::aligned(args.y_transposed);
  auto* partials = static_cast<float*>(args.workspace);
  cuda::launch(quantize_tiles<From, To, sums>, grid, threads, 0, stream, static_cast<const From*>(args.x),
               d.plain ? static_cast<To*>(args.y) : nullptr,
               d.transposed ? static_cast<To*>(args.y_transposed) : nullptr, d.rows, d.columns, args.scale,
               reinterpret_cast<unsigned*>(args.amax), partials, plain_words, turned_words);
  if constexpr (sums)
    enqueue_column_sums({.partials = partials,
                         .parts = tiles(d.rows),
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
    return d_.column_sums ? static_cast<std::size_t>(tiles(d_.rows) * d_.columns) * sizeof(float) : 0;
  }

  void run(Stream& to, const Args& args) override {
    const cudaStream_t stream = cuda::native(to);
    switch (d_.from) {
      case DType::f32: return round<float>(args, stream);
      case DType::bf16: return round<__nv_bfloat16>(args, stream);
      case DType::fp16: return round<__half>(args, stream);
      default: refuse_type("rounding to 8 bits", d_.from);
    }
  }

 private:
  template <typename From>
  void round(const Args& args, cudaStream_t stream) {
    if (d_.to == DType::fp8_e4m3)
      round<From, __nv_fp8_e4m3>(args, stream);
    else
      round<From, __nv_fp8_e5m2>(args, stream);
  }
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

Made<Quantize> make_cuda_quantize(Device&, const QuantizeDesc& d) {
  return std::unique_ptr<Quantize>(std::make_unique<CudaQuantize>(d));
}

Made<ScaleUpdate> make_cuda_scale_update(Device&, const ScaleUpdateDesc& d) {
  return std::unique_ptr<ScaleUpdate>(std::make_unique<CudaScaleUpdate>(d));
}

}  // namespace assay::ops
