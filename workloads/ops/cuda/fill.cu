// Philox on the GPU: a thread generates 64 bits, for four normal numbers, one f64 number or eight integers.
#include "workloads/ops/cuda/fill.h"

#include "harness/device/cuda/launch.h"
#include "harness/device/cuda/vector.h"
#include "workloads/ops/cuda/supported_types.h"
#include "workloads/ops/random.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

namespace assay::ops {

namespace {

constexpr int threads = 256;

struct Stream64 {
  std::uint32_t key[2];
  std::uint32_t purpose[2];

  __device__ std::uint64_t operator()(std::uint64_t index) const {
    std::uint32_t c0 = static_cast<std::uint32_t>(index), c1 = static_cast<std::uint32_t>(index >> 32);
    std::uint32_t c2 = purpose[0], c3 = purpose[1], k0 = key[0], k1 = key[1];
#pragma unroll
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0, p1 = std::uint64_t{0xCD9E8D57u} * c2;
      const std::uint32_t next = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
      c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c0 = next;
      c1 = static_cast<std::uint32_t>(p1);
      c3 = static_cast<std::uint32_t>(p0);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return std::uint64_t{c1} << 32 | c0;
  }
};

__device__ std::int64_t first_of_thread() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ std::int64_t all_threads() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

template <typename T>
__global__ void fill_normal(T* to, std::int64_t count, Stream64 bits, const float* table) {
  const std::int64_t words = (count + 3) / 4;
  for (std::int64_t word = first_of_thread(); word < words; word += all_threads()) {
    const std::uint64_t four = bits(static_cast<std::uint64_t>(word));
    cuda::Vector<T, 4> values;
#pragma unroll
    for (int i = 0; i < 4; ++i) values.lane[i] = cuda::narrow<T>(table[(four >> (16 * i)) & 0xffffu]);
    if (word * 4 + 4 <= count) {
      cuda::store(to + word * 4, cuda::packed(values));
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i)  // a constant index keeps the lanes in registers
        if (word * 4 + i < count) to[word * 4 + i] = values.lane[i];
    }
  }
}

__global__ void fill_normal_f64(double* to, std::int64_t count, Stream64 bits, const float* table) {
  for (std::int64_t i = first_of_thread(); i < count; i += all_threads()) {
    const std::uint64_t word = bits(static_cast<std::uint64_t>(i));
    const int slice = static_cast<int>(word & 0xffffu);
    const double low = static_cast<double>(table[slice]);
    const double high = static_cast<double>(table[slice < 65535 ? slice + 1 : slice]);
    const double place = static_cast<double>(word >> 16) * 0x1p-48 - 0.5;
#ifdef ASSAY_CUDA_EMULATED
    to[i] = low + (high - low) * place;
#else
    to[i] = __dadd_rn(low, __dmul_rn(high - low, place));  // rounded as on the host: not fused
#endif
  }
}

__global__ void fill_bytes(std::uint8_t* to, std::int64_t count, Stream64 bits) {
  const std::int64_t words = (count + 7) / 8;
  for (std::int64_t word = first_of_thread(); word < words; word += all_threads()) {
    const std::uint64_t eight = bits(static_cast<std::uint64_t>(word));
    if (word * 8 + 8 <= count)
      reinterpret_cast<std::uint64_t*>(to)[word] = eight;
    else
      for (std::int64_t i = 0; i < count - word * 8; ++i)
        to[word * 8 + i] = static_cast<std::uint8_t>(eight >> (8 * i));
  }
}

// The current device's table, created once, on `stream`: a copy from pageable memory may return before it is complete,
// and only its own stream waits for it.
const float* device_table(cudaStream_t stream) {
  static std::mutex mutex;
  static std::map<int, const float*> tables;
  int device = 0;
  ASSAY_CUDA(cudaGetDevice(&device));
  const std::lock_guard lock(mutex);
  const float*& table = tables[device];
  if (!table) {
    const std::vector<float>& values = normal_table();
    void* data = nullptr;
    ASSAY_CUDA(cudaMalloc(&data, values.size() * sizeof(float)));
    ASSAY_CUDA(cudaMemcpyAsync(data, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice, stream));
    ASSAY_CUDA(cudaStreamSynchronize(stream));
    table = static_cast<const float*>(data);
  }
  return table;
}

unsigned blocks_for(std::int64_t words) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((words + threads - 1) / threads, 1, 16384));
}

template <typename T>
void normal(void* data, std::int64_t count, Stream64 bits, cudaStream_t stream) {
  cuda::launch(fill_normal<T>, blocks_for(count / 4), threads, 0, stream, static_cast<T*>(data), count, bits,
               device_table(stream));
}

}  // namespace

void fill_random_on_device(void* data, DType dtype, std::int64_t count, const Rng& rng, cudaStream_t stream) {
  if (count == 0) return;
  const Stream64 bits{{rng.key()[0], rng.key()[1]},
                      {static_cast<std::uint32_t>(rng.purpose()), static_cast<std::uint32_t>(rng.purpose() >> 32)}};
  switch (dtype) {
    case DType::f64:
      cuda::launch(fill_normal_f64, blocks_for(count), threads, 0, stream, static_cast<double*>(data), count, bits,
                   device_table(stream));
      return;
    case DType::f32:
    case DType::tf32: return normal<float>(data, count, bits, stream);
    case DType::bf16: return normal<__nv_bfloat16>(data, count, bits, stream);
    case DType::fp16: return normal<__half>(data, count, bits, stream);
    case DType::fp8_e4m3: return normal<__nv_fp8_e4m3>(data, count, bits, stream);
    case DType::fp8_e5m2: return normal<__nv_fp8_e5m2>(data, count, bits, stream);
    case DType::s8:
    case DType::u8:
      cuda::launch(fill_bytes, blocks_for(count / 8), threads, 0, stream, static_cast<std::uint8_t*>(data), count,
                   bits);
      return;
    default: refuse_type("random fill", dtype);
  }
}

}  // namespace assay::ops
