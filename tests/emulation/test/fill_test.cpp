// Random fills on a GPU equal the host's, bit for bit.
#include "workloads/ops/cuda/fill.h"
#include "workloads/ops/random.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace assay::ops {
namespace {

TEST(FillOnDevice, IsWhatTheHostFills) {
  const Rng rng(11, "fill");
  for (const DType dtype : {DType::f64, DType::f32, DType::tf32, DType::bf16, DType::fp16, DType::fp8_e4m3,
                            DType::fp8_e5m2, DType::u8, DType::s8})
    for (const std::int64_t count : {1, 3, 8, 1001, 4096}) {
      std::vector<std::byte> want(static_cast<std::size_t>(count) * size_of(dtype)), got(want.size());
      fill_random(want.data(), dtype, 0, count, rng);
      void* data = nullptr;
      ASSERT_EQ(cudaMalloc(&data, want.size()), cudaSuccess);
      fill_random_on_device(data, dtype, count, rng, nullptr);
      ASSERT_EQ(cudaMemcpy(got.data(), data, got.size(), cudaMemcpyDeviceToHost), cudaSuccess);
      EXPECT_EQ(got, want) << name_of(dtype) << " " << count;
      EXPECT_EQ(cudaFree(data), cudaSuccess);
    }
}

}  // namespace
}  // namespace assay::ops
