// The loops that only read: read and dot. The block that ends last adds the blocks' sums in a fixed order.
#include "harness/device/cuda/reduce.h"
#include "suites/memory/cuda/loops.h"

namespace assay::memory {

namespace {

using Access = Variant::Access;

// The first word of the scratch counts blocks; their sums follow.
struct Scratch {
  unsigned ended;
  unsigned unused;
  double partial[max_partial_sums];
};

template <Op op, int unroll, Access access>
__global__ void __launch_bounds__(max_threads) sum(double* result, Scratch* scratch, const double2* __restrict__ x,
                                                   const double2* __restrict__ y, std::size_t vectors, Walk way) {
  __shared__ double warps[32];
  __shared__ int last;
  double sums[unroll] = {};
  const auto term = [](double2 a, double2 b) { return op == Op::dot ? a.x * b.x + a.y * b.y : a.x + a.y; };
  walk<unroll>(vectors, way, [&](std::size_t first, bool whole) {
    const unsigned stride = blockDim.x;
    if (whole) {
      double2 a[unroll], b[unroll] = {};
#pragma unroll
      for (int u = 0; u < unroll; ++u) {
        a[u] = load<access>(x + first + u * stride);
        if constexpr (op == Op::dot) b[u] = load<access>(y + first + u * stride);
      }
#pragma unroll
      for (int u = 0; u < unroll; ++u) sums[u] += term(a[u], b[u]);
    } else {
      for (std::size_t i = first; i < vectors; i += stride) {
        const double2 a = load<access>(x + i);
        sums[0] += term(a, op == Op::dot ? load<access>(y + i) : a);
      }
    }
  });
  double total = 0;
#pragma unroll
  for (int u = 0; u < unroll; ++u) total += sums[u];
  total = cuda::block_sum(total, warps);
  if (threadIdx.x == 0) {
    scratch->partial[blockIdx.x] = total;
    __threadfence();
    last = atomicAdd(&scratch->ended, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  double folded = 0;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) folded += __ldcg(&scratch->partial[i]);
  folded = cuda::block_sum(folded, warps);
  if (threadIdx.x == 0) {
    *result = folded;
    scratch->ended = 0;
  }
}

using Kernel = void (*)(double*, Scratch*, const double2*, const double2*, std::size_t, Walk);

template <Op op>
Kernel kernel_of(const Variant& variant) {
  switch (variant.access) {
    case Access::plain:
      if (variant.unroll == 2) return sum<op, 2, Access::plain>;
      if (variant.unroll == 4) return sum<op, 4, Access::plain>;
      if (variant.unroll == 8 && op == Op::read) return sum<Op::read, 8, Access::plain>;
      break;
    case Access::streaming:
      if (variant.unroll == 4) return sum<op, 4, Access::streaming>;
      break;
    case Access::second:
      if (variant.unroll == 4) return sum<op, 4, Access::second>;
      break;
  }
  refuse(variant);
}

}  // namespace

void run_sum(Op op, const Variant& variant, const Arrays& arrays, std::uint64_t passes, cudaStream_t stream) {
  const std::size_t vectors = arrays.elements / 2;
  const Walk way = walk_of(variant, vectors, passes);
  if (way.grid > max_partial_sums) refuse(variant);
  cuda::launch(op == Op::dot ? kernel_of<Op::dot>(variant) : kernel_of<Op::read>(variant), way.grid,
               static_cast<unsigned>(variant.threads), 0, stream, arrays.sum, static_cast<Scratch*>(arrays.scratch),
               reinterpret_cast<const double2*>(arrays.x), reinterpret_cast<const double2*>(arrays.y), vectors, way);
}

}  // namespace assay::memory
