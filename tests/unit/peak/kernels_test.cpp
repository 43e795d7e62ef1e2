// Every loop that this CPU runs gives its closed form bit by bit, and its counts are right.
#include "suites/peak/kernels.h"
#include "harness/core/dtype.h"
#include "suites/peak/operands.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace assay::peak {
namespace {

std::string name_of_kernel(const Kernel& kernel) { return std::string(kernel.dtype) + "/" + std::string(kernel.isa); }

TEST(PeakKernels, SumsEqualTheClosedForm) {
  for (const Kernel& kernel : kernels()) {
    if (!kernel.supported(cpu::instruction_sets())) {
      std::cout << "[ skipped ] " << name_of_kernel(kernel) << ": not on this CPU\n";
      continue;
    }
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      const Operands operands = make_operands(kernel, seed);
      std::vector<std::byte> sums(kernel.sum_bytes());
      kernel.run(operands, kernel.pairs, sums.data());
      EXPECT_EQ(sums, expected_sums(kernel, operands)) << name_of_kernel(kernel);
    }
  }
}

TEST(PeakKernels, OneMissedStepIsDetected) {
  for (const Kernel& kernel : kernels()) {
    if (!kernel.supported(cpu::instruction_sets())) continue;
    const Operands operands = make_operands(kernel, 1);
    std::vector<std::byte> sums(kernel.sum_bytes());
    kernel.run(operands, kernel.pairs - 1, sums.data());
    EXPECT_NE(sums, expected_sums(kernel, operands)) << name_of_kernel(kernel);
  }
}

// The closed form compared with a plain loop, in the layouts of vectors and tiles; also on CPUs without AMX.
TEST(PeakKernels, ClosedFormMatchesTheInstructions) {
  for (const Kernel& kernel : kernels()) {
    if (kernel.element != Element::int8) continue;
    const Operands o = make_operands(kernel, 7);
    const auto x = [&](std::size_t i) { return static_cast<std::int64_t>(std::to_integer<std::uint8_t>(o.x[i])); };
    const auto y = [&](std::size_t i) {
      return static_cast<std::int64_t>(std::bit_cast<std::int8_t>(o.y0[i])) + std::bit_cast<std::int8_t>(o.y1[i]);
    };
    const std::vector<std::byte> sums = expected_sums(kernel, o);
    const std::size_t columns = static_cast<std::size_t>(kernel.lanes / kernel.rows);
    for (std::size_t row = 0; row < static_cast<std::size_t>(kernel.rows); ++row)
      for (std::size_t column = 0; column < columns; ++column) {
        std::int64_t pair = 0;
        // TDPBUSD: for each of 16 words k, c[row][column] += sum over 4 bytes of a[row][k] * b[k][column].
        for (std::size_t word = 0; word < static_cast<std::size_t>(kernel.products) / 4; ++word)
          for (std::size_t byte = 0; byte < 4; ++byte)
            pair += kernel.rows > 1 ? x(row * 64 + word * 4 + byte) * y(word * 64 + column * 4 + byte)
                                    : x(column * 4 + byte) * y(column * 4 + byte);
        const double want = static_cast<double>(kernel.pairs * pair);
        EXPECT_EQ(sum_at(kernel, sums.data(), row * columns + column), want) << name_of_kernel(kernel);
      }
  }
}

TEST(PeakKernels, OperandsStayWithinTheirType) {
  for (const Kernel& kernel : kernels()) {
    const Operands o = make_operands(kernel, 3);
    bool any = false;
    for (const std::byte b : o.y1) any = any || b != std::byte{};
    EXPECT_TRUE(any) << name_of_kernel(kernel);
    // Every f32 sum must be exact: below 2^12 in steps of 2^-11.
    if (kernel.element != Element::f32 && kernel.element != Element::bf16) continue;
    const std::vector<std::byte> sums = expected_sums(kernel, o);
    for (std::size_t i = 0; i < static_cast<std::size_t>(kernel.accumulators * kernel.lanes); ++i) {
      const double sum = sum_at(kernel, sums.data(), i);
      EXPECT_LT(std::abs(sum), 4096) << name_of_kernel(kernel);
      EXPECT_EQ(sum * 2048, std::round(sum * 2048)) << name_of_kernel(kernel);
    }
  }
}

TEST(PeakKernels, CountsAnFmaAsTwo) {
  const Kernel* kernel = find_kernel("f32", "avx512");
  if (!kernel) GTEST_SKIP() << "no x86-64";
  EXPECT_EQ(kernel->flops_per_pass(), 2.0 * 2 * 65536 * 16 * 16);
  const Kernel* tile = find_kernel("bf16", "amx");
  EXPECT_EQ(tile->flops_per_pass(), 2.0 * 2 * 4096 * 5 * 16 * 16 * 32);
  EXPECT_EQ(find_kernel("bf16", "sse"), nullptr);
}

}  // namespace
}  // namespace assay::peak
