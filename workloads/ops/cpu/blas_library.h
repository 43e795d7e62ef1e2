// The BLAS for f64 products: found and loaded at run time, and corrected if it misdetects the CPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace assay::ops {

// Instruction sets that BLAS cores are built for, weakest first.
enum class BlasLevel { other, avx, avx2, avx512 };

// The level of an OpenBLAS core ("SkylakeX") or BLIS configuration ("skx"); `other` for unknown names.
BlasLevel blas_level(const std::string& core);
// The level that this machine supports, from CPUID.
BlasLevel cpu_blas_level();
// The OpenBLAS core type to request for a level; empty for `other`.
std::string openblas_core_for(BlasLevel level);

struct BlasLibrary {
  using Dgemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha,
                         const double* a, int lda, const double* b, int ldb, double beta, double* c, int ldc);

  std::string name;  // OpenBLAS, BLIS
  std::string version;
  std::string core;      // the core type in use
  std::string detected;  // the core type that the library's own detection chose
  Dgemm dgemm = nullptr;
  void (*set_threads)(long) = nullptr;  // if the library does not follow OpenMP's number of threads

  // "OpenBLAS 0.3.21 (SkylakeX; by itself it chose Prescott)".
  std::string text() const;
  std::string isa() const;
};

// In order of preference: OpenBLAS built for OpenMP (so that it shares the team's threads) with a core type that uses
// all that the CPU supports; BLIS built for OpenMP; OpenBLAS with a weaker core type. Measured on Zen 4 and Emerald
// Rapids, OpenBLAS with the right core type beats BLIS. Nothing if there is none; `tried` gets one reason per library.
std::optional<BlasLibrary> load_blas(std::vector<std::string>& tried);

}  // namespace assay::ops
