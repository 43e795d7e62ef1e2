// Copies by kernels, and the test pattern on the device.
#include "suites/transfer/cuda/copies.h"

#include "harness/device/cuda/launch.h"

#include <algorithm>

namespace assay::transfer {

namespace {

constexpr unsigned threads = 512;
constexpr int unroll = 4;

unsigned grid(std::size_t pieces, unsigned max_blocks = 1024) {
  return static_cast<unsigned>(std::clamp<std::size_t>((pieces + threads - 1) / threads, 1, max_blocks));
}

// `unroll` loads of 16 bytes are in flight before the first store.
__global__ void __launch_bounds__(threads) copy_bytes(void* to, const void* from, std::size_t bytes) {
  const std::size_t lanes = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  const std::size_t lane = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::size_t vectors = bytes / sizeof(uint4);
  const auto* source = static_cast<const uint4*>(from);
  auto* target = static_cast<uint4*>(to);
  std::size_t i = lane;
  for (; i + (unroll - 1) * lanes < vectors; i += unroll * lanes) {
    uint4 value[unroll];
#pragma unroll
    for (int u = 0; u < unroll; ++u) value[u] = source[i + u * lanes];
#pragma unroll
    for (int u = 0; u < unroll; ++u) target[i + u * lanes] = value[u];
  }
  for (; i < vectors; i += lanes) target[i] = source[i];
  for (std::size_t b = vectors * sizeof(uint4) + lane; b < bytes; b += lanes)
    static_cast<std::uint8_t*>(to)[b] = static_cast<const std::uint8_t*>(from)[b];
}

__global__ void __launch_bounds__(threads) fill_bytes(void* data, std::size_t bytes) {
  const std::size_t lanes = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  const std::size_t lane = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::size_t i = lane; i < bytes / 4; i += lanes) static_cast<std::uint32_t*>(data)[i] = word(i);
  for (std::size_t b = bytes / 4 * 4 + lane; b < bytes; b += lanes) static_cast<std::uint8_t*>(data)[b] = byte(b);
}

__device__ void check_byte(const void* data, std::size_t b, Wrong* wrong) {
  if (static_cast<const std::uint8_t*>(data)[b] == byte(b)) return;
  const unsigned long long n = atomicAdd(reinterpret_cast<unsigned long long*>(&wrong->count), 1ull);
  if (n < Wrong::kept) wrong->place[n] = b;
}

__global__ void __launch_bounds__(threads) compare_bytes(const void* data, std::size_t bytes, Wrong* wrong) {
  const std::size_t lanes = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  const std::size_t lane = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::size_t i = lane; i < bytes / 4; i += lanes)
    if (static_cast<const std::uint32_t*>(data)[i] != word(i))
      for (std::size_t b = 4 * i; b < 4 * i + 4; ++b) check_byte(data, b, wrong);
  for (std::size_t b = bytes / 4 * 4 + lane; b < bytes; b += lanes) check_byte(data, b, wrong);
}

}  // namespace

void enqueue_copy(void* to, const void* from, std::size_t bytes, unsigned max_blocks, cudaStream_t stream) {
  cuda::launch(copy_bytes, grid(bytes / sizeof(uint4), max_blocks), threads, 0, stream, to, from, bytes);
}
void enqueue_fill(void* data, std::size_t bytes, cudaStream_t stream) {
  cuda::launch(fill_bytes, grid(bytes / 4), threads, 0, stream, data, bytes);
}
void enqueue_compare(const void* data, std::size_t bytes, Wrong* wrong, cudaStream_t stream) {
  cuda::launch(compare_bytes, grid(bytes / 4), threads, 0, stream, data, bytes, wrong);
}

}  // namespace assay::transfer
