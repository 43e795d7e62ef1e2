// The loops that store: write, copy, scale, add, triad.
#include "suites/memory/cuda/loops.h"

namespace assay::memory {

namespace {

using Access = Variant::Access;

template <Op op>
__device__ __forceinline__ double2 result(double2 a, double2 b) {
  if constexpr (op == Op::write) return {written, written};
  if constexpr (op == Op::copy) return a;
  if constexpr (op == Op::scale) return {factor * a.x, factor * a.y};
  if constexpr (op == Op::add) return {a.x + b.x, a.y + b.y};
  return {a.x + factor * b.x, a.y + factor * b.y};
}

template <Op op, int unroll, Access access>
__global__ void __launch_bounds__(max_threads, 1) map(double2* __restrict__ out, const double2* __restrict__ x,
                                                      const double2* __restrict__ y, std::size_t vectors, Walk way) {
  constexpr bool first_input = op != Op::write, second_input = op == Op::add || op == Op::triad;
  walk<unroll>(vectors, way, [&](std::size_t first, bool whole) {
    double2 a[unroll] = {}, b[unroll] = {};
    const unsigned stride = blockDim.x;
    if (whole) {
#pragma unroll
      for (int u = 0; u < unroll; ++u) {
        if constexpr (first_input) a[u] = load<access>(x + first + u * stride);
        if constexpr (second_input) b[u] = load<access>(y + first + u * stride);
      }
#pragma unroll
      for (int u = 0; u < unroll; ++u) store<access>(out + first + u * stride, result<op>(a[u], b[u]));
    } else {
      for (std::size_t i = first; i < vectors; i += stride) {
        if constexpr (first_input) a[0] = load<access>(x + i);
        if constexpr (second_input) b[0] = load<access>(y + i);
        store<access>(out + i, result<op>(a[0], b[0]));
      }
    }
  });
}

using Kernel = void (*)(double2*, const double2*, const double2*, std::size_t, Walk);

template <Op op>
Kernel kernel_of(const Variant& variant) {
  switch (variant.access) {
    case Access::plain:
      if (variant.unroll == 1) return map<op, 1, Access::plain>;
      if (variant.unroll == 2) return map<op, 2, Access::plain>;
      if (variant.unroll == 4) return map<op, 4, Access::plain>;
      break;
    case Access::streaming:
      if (variant.unroll == 1) return map<op, 1, Access::streaming>;
      if (variant.unroll == 4) return map<op, 4, Access::streaming>;
      break;
    case Access::second:
      if (variant.unroll == 4) return map<op, 4, Access::second>;
      break;
  }
  refuse(variant);
}

Kernel kernel_of(Op op, const Variant& variant) {
  switch (op) {
    case Op::write: return kernel_of<Op::write>(variant);
    case Op::copy: return kernel_of<Op::copy>(variant);
    case Op::scale: return kernel_of<Op::scale>(variant);
    case Op::add: return kernel_of<Op::add>(variant);
    default: return kernel_of<Op::triad>(variant);
  }
}

}  // namespace

void run_map(Op op, const Variant& variant, const Arrays& arrays, std::uint64_t passes, cudaStream_t stream) {
  const std::size_t vectors = arrays.elements / 2;
  const Walk way = walk_of(variant, vectors, passes);
  cuda::launch(kernel_of(op, variant), way.grid, static_cast<unsigned>(variant.threads), 0, stream,
               reinterpret_cast<double2*>(arrays.out), reinterpret_cast<const double2*>(arrays.x),
               reinterpret_cast<const double2*>(arrays.y), vectors, way);
}

}  // namespace assay::memory
