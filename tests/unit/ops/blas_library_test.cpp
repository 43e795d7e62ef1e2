// The BLAS in use runs the best instruction set of the CPU, and its text says if its own detection was overridden.
#include "workloads/ops/cpu/blas_library.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace assay::ops {
namespace {

TEST(BlasLibrary, UsesTheBestInstructionSetOfTheCpu) {
  unsetenv("OPENBLAS_CORETYPE");  // a user's choice, which load_blas() respects
  std::vector<std::string> tried;
  const auto blas = load_blas(tried);
  ASSERT_TRUE(blas) << (tried.empty() ? "nothing was tried" : tried.front());
  EXPECT_GE(blas_level(blas->core), cpu_blas_level()) << blas->text();
  EXPECT_FALSE(blas->version.empty());
}

TEST(BlasLibrary, LevelsAreOrdered) {
  EXPECT_LT(blas_level("Prescott"), blas_level("Sandybridge"));
  EXPECT_LT(blas_level("Sandybridge"), blas_level("Zen"));
  EXPECT_LT(blas_level("Haswell"), blas_level("SkylakeX"));
  EXPECT_EQ(blas_level("Cooperlake"), blas_level("SapphireRapids"));
  EXPECT_EQ(blas_level(openblas_core_for(BlasLevel::avx512)), BlasLevel::avx512);
  EXPECT_EQ(blas_level(openblas_core_for(BlasLevel::avx2)), BlasLevel::avx2);
}

TEST(BlasLibrary, TextNamesAnOverride) {
  BlasLibrary blas;
  blas.name = "OpenBLAS", blas.version = "0.3.21", blas.core = blas.detected = "SkylakeX";
  EXPECT_EQ(blas.text(), "OpenBLAS 0.3.21 (SkylakeX)");
  blas.detected = "Prescott";
  EXPECT_EQ(blas.text(), "OpenBLAS 0.3.21 (SkylakeX; by itself it chose Prescott)");
  EXPECT_EQ(blas.isa(), "avx512");
}

}  // namespace
}  // namespace assay::ops
