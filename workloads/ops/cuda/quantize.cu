// Rounding to 8-bit floats, plain and transposed in one pass over memory, and the step of the scales.
#include "harness/device/cuda/launch.h"
#include "harness/device/cuda/native.h"
#include "harness/device/cuda/reduce.h"
#include "harness/device/cuda/vector.h"
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
// without a sign have the numbers' order (NaN above all): the same whatever the order of blocks.
template <typename From, typename To>
__global__ void quantize_tiles(const From* x, To* y, To* turned, std::int64_t rows, std::int64_t columns,
                               const float* scale, unsigned* amax, bool plain_words, bool turned_words) {
  __shared__ __align__(16) std::uint8_t kept[tile][tile + gap];
  __shared__ int joined[32];
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.y) * tile;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * tile;
  const int lane = static_cast<int>(threadIdx.x) % across * wide, line = static_cast<int>(threadIdx.x) / across;
  const float factor = *scale;
  unsigned largest = 0;
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
  if (threadIdx.x == 0) atomicMax(amax, static_cast<unsigned>(most));
  if (!turned) return;
  __syncthreads();
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
                              std::int64_t tensors, std::int64_t length) {
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
  const float value = functors::DelayedScale()(most, largest[i]);
  scale[i] = value;
  inverse[i] = 1.0f / value;
}

template <typename From, typename To>
void enqueue(const QuantizeDesc& d, const Quantize::Args& args, cudaStream_t stream) {
  auto* amax = reinterpret_cast<unsigned*>(args.amax);
  ASSAY_CUDA(cudaMemsetAsync(amax, 0, sizeof *amax, stream));
  const dim3 grid(static_cast<unsigned>((d.columns + tile - 1) / tile),
                  static_cast<unsigned>((d.rows + tile - 1) / tile));
  const bool plain_words = d.columns % wide == 0 && cuda::aligned(args.x, args.y);
  const bool turned_words = d.rows % 16 == 0 && cuda::aligned(args.y_transposed);
  cuda::launch(quantize_tiles<From, To>, grid, threads, 0, stream, static_cast<const From*>(args.x),
               d.plain ? static_cast<To*>(args.y) : nullptr,
               d.transposed ? static_cast<To*>(args.y_transposed) : nullptr, d.rows, d.columns, args.scale, amax,
               plain_words, turned_words);
}

class CudaQuantize final : public Quantize {
 public:
  explicit CudaQuantize(const QuantizeDesc& desc) : d_(desc) {}
  std::string implementation() const override { return "tiles"; }
  std::string isa() const override { return "cuda"; }

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
      enqueue<From, __nv_fp8_e4m3>(d_, args, stream);
    else
      enqueue<From, __nv_fp8_e5m2>(d_, args, stream);
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
                 cuda::native(to), args.amax, args.history, args.largest, args.scale, args.inverse, d_.tensors,
                 d_.length);
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
