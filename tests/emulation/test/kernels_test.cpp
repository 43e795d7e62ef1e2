// The emulation itself: barriers, warps, threads that return early, shared memory, and mistakes that it must report.
#include "harness/core/error.h"
#include "harness/device/cuda/launch.h"
#include "harness/device/cuda/vector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace assay::emulation {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Memory that both kernels and the test may access.
template <typename T>
class Pinned {
 public:
  explicit Pinned(std::size_t count, T value = {}) : count_(count) {
    EXPECT_EQ(cudaMallocHost(reinterpret_cast<void**>(&data_), count * sizeof(T)), cudaSuccess);
    std::fill(begin(), end(), value);
  }
  ~Pinned() { cudaFreeHost(data_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  using value_type = T;
  using const_iterator = const T*;
  T* data() const { return data_; }
  T* begin() const { return data_; }
  T* end() const { return data_ + count_; }
  T& operator[](std::size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

template <typename... P, typename... A>
void run(void (*kernel)(P...), dim3 grid, dim3 block, A... arguments) {
  cuda::launch(kernel, grid, block, 0, nullptr, arguments...);
}

__global__ void block_sum(const int* in, int* out, int count) {
  __shared__ int part[256];
  int sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) sum += in[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

TEST(Barrier, TreeInSharedMemory) {
  Pinned<int> in(1000), out(9);
  std::iota(in.begin(), in.end(), 1);
  run(block_sum, 9, 256, in.data(), out.data(), 1000);
  EXPECT_THAT(out, Each(500500));
}

__global__ void indices(int* out) {
  const unsigned in_block = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  atomicAdd(&out[block * blockDim.x * blockDim.y * blockDim.z + in_block], 1);
}

TEST(Indices, EveryThreadOnce) {
  Pinned<int> out(3 * 2 * 4 * 5 * 2 * 3);
  run(indices, dim3(3, 2, 4), dim3(5, 2, 3), out.data());
  EXPECT_THAT(out, Each(1));
}

__global__ void shuffles(int* xored, double* down, int* up, int* broadcast, unsigned* reduced) {
  const int i = static_cast<int>(threadIdx.x);
  int sum = i;
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
  xored[i] = sum;
  down[i] = __shfl_down_sync(0xffffffffu, static_cast<double>(i), 3, 8);
  up[i] = __shfl_up_sync(0xffffffffu, i, 1);
  broadcast[i] = __shfl_sync(0xffffffffu, i, 2, 16);
  reduced[i] = __reduce_max_sync(0xffffffffu, static_cast<unsigned>(i * 7 % 32)) + __reduce_add_sync(0xffffffffu, 2u);
}

TEST(Warp, Shuffles) {
  Pinned<int> xored(64), up(64), broadcast(64);
  Pinned<double> down(64);
  Pinned<unsigned> reduced(64);
  run(shuffles, 1, 64, xored.data(), down.data(), up.data(), broadcast.data(), reduced.data());
  for (int i = 0; i < 64; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(xored[at], i < 32 ? 496 : 1520);
    EXPECT_EQ(down[at], i % 8 < 5 ? i + 3 : i);
    EXPECT_EQ(up[at], i % 32 == 0 ? i : i - 1);
    EXPECT_EQ(broadcast[at], i / 16 * 16 + 2);
    EXPECT_EQ(reduced[at], 31u + 64u);
  }
}

__global__ void votes(unsigned* ballot, int* counts) {
  const unsigned i = threadIdx.x;
  ballot[i] = __ballot_sync(0xffffffffu, i % 3 == 0);
  if (i % 32 < 16) ballot[64 + i] = __ballot_sync(0xffffu, __any_sync(0xffffu, i == 3));
  counts[i] = __syncthreads_count(i < 10) + 100 * __syncthreads_or(i == 63) + 1000 * __syncthreads_and(i < 63);
}

TEST(Warp, VotesOfWholeAndHalfWarps) {
  Pinned<unsigned> ballot(128, 7);
  Pinned<int> counts(64);
  run(votes, 1, 64, ballot.data(), counts.data());
  EXPECT_EQ(ballot[5], 0x49249249u);
  EXPECT_EQ(ballot[40], 0x92492492u);
  EXPECT_EQ(ballot[64], 0xffffu);
  EXPECT_EQ(ballot[64 + 32], 0u);
  EXPECT_EQ(ballot[64 + 20], 7u);
  EXPECT_THAT(counts, Each(110));
}

__global__ void early(int* out, unsigned count) {
  if (threadIdx.x >= count) return;
  __shared__ int seen[64];
  seen[threadIdx.x] = 1;
  __syncthreads();
  int sum = 0;
  for (unsigned i = 0; i < count; ++i) sum += seen[i];
  __syncwarp();
  out[threadIdx.x] = sum;
}

TEST(Barrier, ThreadsThatReturnedCountAsArrived) {
  Pinned<int> out(64);
  run(early, 2, 64, out.data(), 40u);
  EXPECT_EQ(out[39], 40);
  EXPECT_EQ(out[40], 0);
}

// One thread waits for its neighbour, which waits for it at the barrier.
__global__ void divergent(int* out) {
  if (threadIdx.x == 32)
    __syncwarp(3);
  else
    __syncthreads();
  out[threadIdx.x] = 1;
}

TEST(Mistakes, AnEndlessWaitIsNamed) {
  Pinned<int> out(64);
  const auto launch = [&] { run(divergent, dim3(1, 2), 34, out.data()); };
  EXPECT_THAT(launch,
              ThrowsMessage<Error>(AllOf(HasSubstr("divergent, block (0, "), HasSubstr("never ends"),
                                         HasSubstr("33 threads wait at a barrier"), HasSubstr("lanes 0x1 of warp 1"))));
  // The next kernel still runs.
  Pinned<int> in(10, 1), sum(1);
  run(block_sum, 1, 256, in.data(), sum.data(), 10);
  EXPECT_EQ(sum[0], 10);
}

enum class Kind { one };
template <Kind kind, int count>
__global__ void templated(int*) {
  __trap();
}

TEST(Mistakes, KernelsAreNamedWithTheirTemplateArguments) {
  const auto kernel = &templated<Kind::one, 4>;
  EXPECT_THAT(kernel_name(reinterpret_cast<const void*>(kernel)), testing::EndsWith("Kind)0, 4>"));
}

__global__ void not_in_mask() { __syncwarp(2); }

TEST(Mistakes, AMaskThatLeavesTheCallerOut) {
  EXPECT_THAT([] { run(not_in_mask, 1, 1); }, ThrowsMessage<Error>(HasSubstr("leaves it out")));
}

__global__ void neighbours(int* chain) { chain[blockIdx.x + 1] = chain[blockIdx.x] + 1; }

TEST(Blocks, RunInNoOrderToRelyOn) {
  Pinned<int> chain(17);
  run(neighbours, 16, 1, chain.data());
  EXPECT_NE(chain[16], 16);
}

__global__ void no_barrier(int* out) {
  __shared__ int value[64];
  value[threadIdx.x] = static_cast<int>(threadIdx.x);
  out[blockIdx.x * 64 + threadIdx.x] = value[63 - threadIdx.x];
}

TEST(Blocks, AMissingBarrierShows) {
  Pinned<int> out(128);
  run(no_barrier, 2, 64, out.data());
  int wrong = 0;
  for (int i = 0; i < 128; ++i) wrong += out[static_cast<std::size_t>(i)] != 63 - i % 64;
  EXPECT_GT(wrong, 0);
}

// Sums over the block three times; without a barrier, one round's sums could be overwritten by the next before all have
// read them.
__global__ void no_second_barrier(int* out) {
  __shared__ int sums[2];
  int wrong = 0;
  for (int turn = 0; turn < 3; ++turn) {
    int sum = turn;
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = threadIdx.x % 32 < 2 ? sums[threadIdx.x % 32] : 0;
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
    wrong += sum != 64 * turn;
  }
  out[blockIdx.x * 64 + threadIdx.x] = wrong;
}

TEST(Blocks, AMissingBarrierBeforeSharedMemoryIsUsedAgainShows) {
  Pinned<int> out(12 * 64);
  run(no_second_barrier, 12, 64, out.data());
  EXPECT_GT(std::accumulate(out.begin(), out.end(), 0), 0);
}

__global__ void vectors_at(float* data, int first) {
  cuda::store(data + first, cuda::load<4>(data + first));
  cuda::store<cuda::Keep::no>(data + first, cuda::load<4, cuda::Keep::no>(data + first));
}

TEST(Mistakes, AVectorAtAMisalignedAddressIsNamed) {
  Pinned<float> data(16);
  EXPECT_NO_THROW(run(vectors_at, 1, 1, data.data(), 4));
  EXPECT_THAT([&] { run(vectors_at, 1, 1, data.data(), 2); },
              ThrowsMessage<Error>(HasSubstr("16 bytes at a misaligned address")));
}

__global__ void shared_is_garbage(float* out) {
  __shared__ float still[4];
  ASSAY_DYNAMIC_SHARED(float, moving);
  out[0] = still[threadIdx.x], out[1] = moving[threadIdx.x];
  __syncthreads();
  still[threadIdx.x] = moving[threadIdx.x] = 1;
}

TEST(Shared, StartsAsGarbage) {
  Pinned<float> out(2);
  for (int turn = 0; turn < 2; ++turn) {
    cuda::launch(shared_is_garbage, 2, 1, 64, nullptr, out.data());
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_TRUE(std::isnan(out[1]));
  }
}

__global__ void past_the_end(unsigned count) {
  ASSAY_DYNAMIC_SHARED(int, words);
  words[count] = 1;
}

TEST(Shared, WritingPastTheEndIsNamed) {
  EXPECT_NO_THROW(cuda::launch(past_the_end, 1, 1, 64, nullptr, 15u));
  EXPECT_THAT([] { cuda::launch(past_the_end, 1, 1, 64, nullptr, 16u); },
              ThrowsMessage<Error>(AllOf(HasSubstr("past_the_end"), HasSubstr("past its 64 bytes"))));
}

TEST(Shared, BeyondTheLimitIsRefusedUntilAllowed) {
  const std::size_t much = std::size_t{64} << 10;
  EXPECT_THAT([&] { cuda::launch(past_the_end, 1, 1, much, nullptr, 0u); },
              ThrowsMessage<Error>(HasSubstr("cudaErrorInvalidValue")));
  cudaFuncSetAttribute(reinterpret_cast<const void*>(&past_the_end), cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(much));
  EXPECT_NO_THROW(cuda::launch(past_the_end, 1, 1, much, nullptr, 0u));
}

TEST(Launch, RefusesWhatNoDeviceTakes) {
  for (const dim3 block : {dim3(1025), dim3(0), dim3(1, 1, 65)})
    EXPECT_THAT([&] { run(not_in_mask, 1, block); }, ThrowsMessage<Error>(HasSubstr("cudaErrorInvalidConfiguration")));
  EXPECT_THAT([&] { run(not_in_mask, dim3(1, 65536), 1); },
              ThrowsMessage<Error>(HasSubstr("cudaErrorInvalidConfiguration")));
}

__global__ void store(int* to) { *to = 1; }

TEST(Launch, IsNotBlamedForAnEarlierError) {
  Pinned<int> out(1);
  EXPECT_EQ(cudaSetDevice(99), cudaErrorInvalidDevice);
  EXPECT_NO_THROW(run(store, 1, 1, out.data()));
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

__global__ void atomics(int* least, unsigned* wrapped, float* sum, unsigned long long* swapped) {
  atomicMin(least, static_cast<int>(threadIdx.x) - 5);
  atomicInc(wrapped, 6);
  atomicAdd(sum, 0.5f);
  for (unsigned long long old = *swapped;;) {
    const unsigned long long seen = atomicCAS(swapped, old, old + threadIdx.x);
    if (seen == old) break;
    old = seen;
  }
}

TEST(Atomics, OfEveryThread) {
  const Pinned<int> least(1, 9);
  const Pinned<unsigned> wrapped(1);
  const Pinned<float> sum(1);
  const Pinned<unsigned long long> swapped(1);
  run(atomics, 1, 100, least.data(), wrapped.data(), sum.data(), swapped.data());
  EXPECT_EQ(least[0], -5);
  EXPECT_EQ(wrapped[0], 2u);  // 100 mod 7
  EXPECT_EQ(sum[0], 50);
  EXPECT_EQ(swapped[0], 4950u);
}

TEST(Memory, GuardsAreCheckedWhenItIsFreed) {
  const auto overrun = [](std::size_t at) {
    void* data = nullptr;
    cudaMalloc(&data, 1000);
    enqueue(nullptr, [=] { static_cast<char*>(data)[at] = 1; });
    cudaFree(data);
  };
  overrun(999);
  EXPECT_DEATH(overrun(1000), "byte 1000 of an allocation of 1000 was written");
  EXPECT_DEATH(overrun(1024), "");  // an inaccessible page
}

TEST(Memory, IsTheDevicesOwn) {
  char* data = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&data), 1000), cudaSuccess);
  EXPECT_DEATH(data[10] = 1, "the host touched device memory");
  cudaFree(data);
  std::vector<int> pageable(64);
  EXPECT_THAT([&] { run(indices, 1, 64, pageable.data()); },
              ThrowsMessage<Error>(AllOf(HasSubstr("argument 1"), HasSubstr("indices"), HasSubstr("not pinned"))));
}

TEST(Memory, CopiesStayInsideTheirAllocation) {
  void* data = nullptr;
  ASSERT_EQ(cudaMalloc(&data, 1000), cudaSuccess);
  std::vector<char> host(2000);
  EXPECT_EQ(cudaMemcpyAsync(data, host.data(), 1000, cudaMemcpyDefault, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(data, host.data(), 1001, cudaMemcpyDefault, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(static_cast<char*>(data) + 999, 0, 2, nullptr), cudaErrorInvalidValue);
  cudaFree(data);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace assay::emulation
