// The order of tokens by id is that of a stable sort, for any number of passes.
#include "workloads/ops/cuda/token_order.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace assay::ops {
namespace {

TEST(TokenOrder, IsThatOfAStableSort) {
  const auto check = [](std::int32_t tokens, std::int32_t bound) {
    const auto count = static_cast<std::size_t>(tokens);
    std::int32_t* ids = nullptr;
    void* scratch = nullptr;
    ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&ids), count * sizeof(ids[0])), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&scratch, token_order_bytes(tokens)), cudaSuccess);
    std::mt19937 random(7);
    std::generate_n(ids, count, [&] { return static_cast<std::int32_t>(random() % static_cast<unsigned>(bound)); });
    std::vector<std::int32_t> want(count), got(count);
    std::iota(want.begin(), want.end(), 0);
    std::stable_sort(want.begin(), want.end(), [&](std::int32_t x, std::int32_t y) { return ids[x] < ids[y]; });
    const std::int32_t* order = enqueue_token_order(ids, tokens, bound, scratch, nullptr);
    ASSERT_EQ(cudaMemcpy(got.data(), order, count * sizeof(got[0]), cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(got, want) << tokens << " tokens, ids below " << bound;
    EXPECT_EQ(cudaFree(scratch), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(ids), cudaSuccess);
  };
  check(1, 1);
  check(33, 5);
  check(4097, 256);
  check(9000, 50257);
  check(20000, 128256);
}

}  // namespace
}  // namespace assay::ops
