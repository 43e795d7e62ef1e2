// A radix sort by one block, four bits a pass: a batch has some ten thousand tokens, which one multiprocessor sorts
// while a step's least product runs on all of them; a sort by the whole GPU would be many more launches. Each thread
// keeps a stretch of the tokens in their order, so the sort is stable.
#include "workloads/ops/cuda/token_order.h"

#include "harness/device/cuda/launch.h"
#include "harness/device/cuda/reduce.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace assay::ops {

namespace {

using namespace cuda;

constexpr int threads = 512;
constexpr int digit_bits = 4;
constexpr int digits = 1 << digit_bits;
constexpr int ahead = 8;  // tokens that a thread reads at once

// The sum of `value` over the threads before this one.
__device__ int sum_before(int value, int* scratch) {
  const int lane = static_cast<int>(threadIdx.x) % warp_threads, warp = static_cast<int>(threadIdx.x) / warp_threads;
  int sum = value;  // over lanes up to this one
#pragma unroll
  for (int step = 1; step < warp_threads; step *= 2) {
    const int other = __shfl_up_sync(whole_warp, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == warp_threads - 1) scratch[warp] = sum;
  __syncthreads();
  int before = 0;
#pragma unroll
  for (int w = 0; w < threads / warp_threads; ++w)
    if (w < warp) before += scratch[w];
  __syncthreads();
  return before + sum - value;
}

// Passes over `bits` bits; each reads one of the two orders and writes the other. The last one's is the result.
__global__ void __launch_bounds__(threads)
    token_order(const std::int32_t* ids, std::int32_t tokens, int bits, std::int32_t* order, std::int32_t* other) {
  __shared__ int starts[digits][threads];  // by digit, then by thread: where its next token of that digit goes
  __shared__ int scratch[threads / warp_threads];
  const int me = static_cast<int>(threadIdx.x);
  const std::int32_t stretch = (tokens + threads - 1) / threads;
  const std::int32_t begin = min(me * stretch, tokens), end = min(begin + stretch, tokens);
  for (int shift = 0; shift < bits; shift += digit_bits) {
    const auto each = [&](auto visit) {
      for (std::int32_t i = begin; i < end; i += ahead) {
        std::int32_t token[ahead];
        int digit[ahead];
#pragma unroll
        for (int k = 0; k < ahead; ++k) token[k] = i + k < end ? (shift == 0 ? i + k : order[i + k]) : -1;
#pragma unroll
        for (int k = 0; k < ahead; ++k) digit[k] = token[k] < 0 ? 0 : ids[token[k]] >> shift & (digits - 1);
#pragma unroll
        for (int k = 0; k < ahead; ++k)
          if (token[k] >= 0) visit(token[k], digit[k]);
      }
    };
#pragma unroll
    for (int d = 0; d < digits; ++d) starts[d][me] = 0;
    each([&](std::int32_t, int digit) { ++starts[digit][me]; });
    __syncthreads();
    // Thread t sums the counts of `digits` neighbours in the order (digit, thread), of which there are `threads` x
    // `digits`.
    int* const mine = &starts[0][0] + me * digits;
    int sum = 0;
#pragma unroll
    for (int k = 0; k < digits; ++k) sum += mine[k];
    int next = sum_before(sum, scratch);
#pragma unroll
    for (int k = 0; k < digits; ++k) {
      const int count = mine[k];
      mine[k] = next;
      next += count;
    }
    __syncthreads();
    each([&](std::int32_t token, int digit) { other[starts[digit][me]++] = token; });
    __syncthreads();
    std::int32_t* const written = other;
    other = order;
    order = written;
  }
}

std::size_t order_bytes(std::int64_t tokens) {
  return (static_cast<std::size_t>(tokens) * sizeof(std::int32_t) + 15) / 16 * 16;
}

}  // namespace

std::size_t token_order_bytes(std::int64_t tokens) { return 2 * order_bytes(tokens); }

const std::int32_t* enqueue_token_order(const std::int32_t* ids, std::int64_t tokens, std::int64_t bound, void* scratch,
                                        cudaStream_t stream) {
  auto* first = static_cast<std::int32_t*>(scratch);
  auto* second = reinterpret_cast<std::int32_t*>(static_cast<std::byte*>(scratch) + order_bytes(tokens));
  // One pass at least: it writes the order of tokens that have no choice.
  const int bits = std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bound - 1))));
  cuda::launch(token_order, 1, threads, 0, stream, ids, static_cast<std::int32_t>(tokens), bits, first, second);
  return (bits + digit_bits - 1) / digit_bits % 2 == 0 ? first : second;
}

}  // namespace assay::ops
