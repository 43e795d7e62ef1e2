#include "workloads/ops/cuda/column_sums.h"

#include "harness/device/cuda/launch.h"
#include "harness/device/cuda/reduce.h"

namespace assay::ops {

namespace {

using namespace cuda;

constexpr int groups = 16;  // of threads that split the parts

// A lane sums a column over every 16th part; then the 16 sums are added in order.
__global__ void __launch_bounds__(groups* warp_threads) column_sums(ColumnSums s) {
  __shared__ float shared[groups][warp_threads];
  const int lane = static_cast<int>(threadIdx.x) % warp_threads, group = static_cast<int>(threadIdx.x) / warp_threads;
  const std::int64_t column = std::int64_t{blockIdx.x} * warp_threads + lane;
  float sum = 0;
  if (column < s.columns) {
    const float* from = s.partials + blockIdx.y * s.piece_stride + column;
#pragma unroll 8
    for (std::int64_t part = group; part < s.parts; part += groups) sum += from[part * s.row_stride];
  }
  shared[group][lane] = sum;
  __syncthreads();
  if (group > 0 || column >= s.columns) return;
  float* out = (blockIdx.y == 0 ? s.first : s.second) + column;
  float total = 0;
#pragma unroll
  for (int g = 0; g < groups; ++g) total += shared[g][lane];
  *out = s.accumulate ? *out + total : total;
}

}  // namespace

void enqueue_column_sums(const ColumnSums& sums, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((sums.columns + warp_threads - 1) / warp_threads);
  cuda::launch(column_sums, dim3(blocks, sums.second ? 2 : 1), groups * warp_threads, 0, stream, sums);
}

}  // namespace assay::ops
