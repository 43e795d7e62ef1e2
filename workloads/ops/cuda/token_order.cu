// A radix sort by one block, eight bits per pass: a batch has about ten thousand tokens, and a sort by the whole GPU
// would need many more launches. Each warp keeps a range of tokens in order, so the sort is stable; it reads 32
// neighbours at once, and ids move along with their tokens between passes, so only writes are scattered.
#include "workloads/ops/cuda/token_order.h"

#include "harness/device/cuda/launch.h"
#include "harness/device/cuda/reduce.h"

#include <vector_types.h>

#include <algorithm>
#include <bit>

namespace assay::ops {

namespace {

using namespace cuda;

constexpr int threads = 1024;
constexpr int warps = threads / warp_threads;
constexpr int digit_bits = 8;
constexpr int digits = 1 << digit_bits;
constexpr int counts = warps * digits / threads;  // that a thread adds
constexpr int ahead = 8;                          // tokens that a lane reads ahead

// The sum of `value` over the threads before this one.
__device__ int sum_before(int value, int* scratch) {
  const int lane = static_cast<int>(threadIdx.x) % warp_threads, warp = static_cast<int>(threadIdx.x) / warp_threads;
  int sum = value;  // of the lanes up to this one
#pragma unroll
  for (int step = 1; step < warp_threads; step *= 2) {
    const int other = __shfl_up_sync(whole_warp, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == warp_threads - 1) scratch[warp] = sum;
  __syncthreads();
  int before = 0;
#pragma unroll
  for (int w = 0; w < warps; ++w)
    if (w < warp) before += scratch[w];
  __syncthreads();
  return before + sum - value;
}

// A token and its id.
using Pair = int2;

// Each pass but the last writes pairs, to `first` and `second` alternately.
__global__ void __launch_bounds__(threads) token_order(const std::int32_t* ids, std::int32_t tokens, int passes,
                                                       Pair* first, Pair* second, std::int32_t* order) {
  __shared__ int places[warps][digits];  // destination of a warp's next token of a digit
  __shared__ int scratch[warps];
  const int me = static_cast<int>(threadIdx.x), lane = me % warp_threads, warp = me / warp_threads;
  const std::int64_t stretch = (std::int64_t{tokens} + threads - 1) / threads * warp_threads;
  const std::int64_t begin = min(warp * stretch, std::int64_t{tokens}),
                     end = min(begin + stretch, std::int64_t{tokens});
  for (int pass = 0; pass < passes; ++pass) {
    const Pair* from = pass % 2 == 0 ? second : first;
    Pair* to = pass % 2 == 0 ? first : second;
    const auto digit_of = [&](Pair pair) { return pair.y >> (pass * digit_bits) & (digits - 1); };
    // For the whole warp at once; token -1 means none.
    const auto each = [&](auto visit) {
      for (std::int64_t i = begin; i < end; i += ahead * warp_threads) {
        Pair pair[ahead];
#pragma unroll
        for (int k = 0; k < ahead; ++k) {
          pair[k] = {-1, -1};
          if (const std::int64_t at = i + k * warp_threads + lane; at < end)
            pair[k] = pass == 0 ? Pair{static_cast<int>(at), ids[at]} : from[at];
        }
#pragma unroll
        for (int k = 0; k < ahead; ++k) visit(pair[k]);
      }
    };
    for (int i = me; i < warps * digits; i += threads) (&places[0][0])[i] = 0;
    __syncthreads();
    each([&](Pair pair) {
      if (pair.x >= 0) atomicAdd(&places[warp][digit_of(pair)], 1);
    });
    __syncthreads();
    // Thread t sums `counts` neighbours in the order (digit, warp).
    const int digit = me / (warps / counts), first_warp = me % (warps / counts) * counts;
    int sum = 0;
#pragma unroll
    for (int k = 0; k < counts; ++k) sum += places[first_warp + k][digit];
    int next = sum_before(sum, scratch);
#pragma unroll
    for (int k = 0; k < counts; ++k) {
      const int count = places[first_warp + k][digit];
      places[first_warp + k][digit] = next;
      next += count;
    }
    __syncthreads();
    each([&](Pair pair) {
      const bool is = pair.x >= 0;
      const int own = is ? digit_of(pair) : digits;
      const unsigned alike = __match_any_sync(whole_warp, own);
      const int before = __popc(alike & ((1u << lane) - 1));
      const int start = is ? places[warp][own] : 0;
      __syncwarp();
      if (is && before == 0) places[warp][own] = start + __popc(alike);
      __syncwarp();
      if (!is) return;
      if (pass == passes - 1)
        order[start + before] = pair.x;
      else
        to[start + before] = pair;
    });
    __syncthreads();
  }
}

// The size of the order, and of each of the two arrays of pairs behind it.
std::size_t order_bytes(std::int64_t tokens) {
  return (static_cast<std::size_t>(tokens) * sizeof(std::int32_t) + 15) / 16 * 16;
}

}  // namespace

std::size_t token_order_bytes(std::int64_t tokens) { return 5 * order_bytes(tokens); }

const std::int32_t* enqueue_token_order(const std::int32_t* ids, std::int64_t tokens, std::int64_t bound, void* scratch,
                                        cudaStream_t stream) {
  auto* bytes = static_cast<std::byte*>(scratch);
  auto* order = reinterpret_cast<std::int32_t*>(bytes);
  auto* first = reinterpret_cast<Pair*>(bytes + order_bytes(tokens));
  auto* second = reinterpret_cast<Pair*>(bytes + 3 * order_bytes(tokens));
  // At least one pass: it writes the order even if all ids are equal.
  const int bits = std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bound - 1))));
  cuda::launch(token_order, 1, threads, 0, stream, ids, static_cast<std::int32_t>(tokens),
               (bits + digit_bits - 1) / digit_bits, first, second, order);
  return order;
}

}  // namespace assay::ops
