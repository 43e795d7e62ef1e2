#include "workloads/ops/cuda/convert_rows.h"

#include "harness/device/cuda/launch.h"
#include "harness/device/cuda/vector.h"

#include <type_traits>

namespace assay::ops {

namespace {

using namespace cuda;

constexpr int threads = 256;

struct Shape {
  std::int64_t from_rows, from_width, to_rows, to_width;
};

// N neighbouring elements of `to` per thread. `whole`: both matrices are accessed 16 bytes at a time.
template <typename From, typename To, int N, bool whole>
__global__ void __launch_bounds__(threads) convert(Shape shape, const From* from, To* to, bool accumulate) {
  const std::int64_t first = (std::int64_t{blockIdx.x} * threads + static_cast<int>(threadIdx.x)) * N;
  if (first >= shape.to_rows * shape.to_width) return;
  const Quotient at = divide(first, shape.to_width);
  Vector<float, N> value{};
  if (at.whole < shape.from_rows) {
    const From* row = from + at.whole * shape.from_width + at.rest;
    if constexpr (whole) {
      value = load_wide<N>(row);
    } else {
#pragma unroll
      for (int k = 0; k < N; ++k)
        if (at.rest + k < shape.from_width) value.lane[k] = widen(row[k]);
    }
  }
  if (accumulate) {
    const Vector<float, N> old = load_wide<N>(to + first);
#pragma unroll
    for (int k = 0; k < N; ++k) value.lane[k] += old.lane[k];
  }
  store_narrow(to + first, value);
}

template <typename From, typename To>
void run(const Rows& from, const Rows& to, bool accumulate, cudaStream_t stream) {
  constexpr int wide = 8;
  const auto* source = static_cast<const From*>(from.data);
  auto* target = static_cast<To*>(to.data);
  const Shape shape{from.rows, from.width, to.rows, to.width};
  const auto start = [&](auto kernel, int width) {
    const std::int64_t count = to.rows * to.width / width;
    launch(kernel, static_cast<unsigned>((count + threads - 1) / threads), threads, 0, stream, shape, source, target,
           accumulate);
  };
  const bool writes_wide = to.width % wide == 0 && aligned(target);
  if (writes_wide && from.width == to.width && aligned(source))
    start(convert<From, To, wide, true>, wide);
  else if (writes_wide)
    start(convert<From, To, wide, false>, wide);
  else
    start(convert<From, To, 1, false>, 1);
}

template <typename From>
void run_from(const Rows& from, const Rows& to, bool accumulate, cudaStream_t stream) {
  if (to.dtype == DType::f32) return run<From, float>(from, to, accumulate, stream);
  if constexpr (!std::is_same_v<From, __half>)
    if (to.dtype == DType::bf16) return run<From, __nv_bfloat16>(from, to, accumulate, stream);
  if constexpr (!std::is_same_v<From, __nv_bfloat16>)
    if (to.dtype == DType::fp16) return run<From, __half>(from, to, accumulate, stream);
  cuda::fail(cudaErrorInvalidValue, "convert_rows() to this type", __FILE__, __LINE__);
}

}  // namespace

void convert_rows(const Rows& from, const Rows& to, bool accumulate, cudaStream_t stream) {
  if (to.rows * to.width == 0) return;
  switch (from.dtype) {
    case DType::f32: return run_from<float>(from, to, accumulate, stream);
    case DType::bf16: return run_from<__nv_bfloat16>(from, to, accumulate, stream);
    case DType::fp16: return run_from<__half>(from, to, accumulate, stream);
    default: cuda::fail(cudaErrorInvalidValue, "convert_rows() from this type", __FILE__, __LINE__);
  }
}

}  // namespace assay::ops
