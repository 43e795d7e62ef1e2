// The BLAS that multiplies f64: found and loaded at run time, and put right where it mistakes the CPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace assay::ops {

// Instruction sets by which BLAS cores differ, weakest first.
enum class BlasLevel { other, avx, avx2, avx512 };

// The level of an OpenBLAS core ("SkylakeX") or BLIS configuration ("skx"); `other` for names not known.
BlasLevel blas_level(const std::string& core);
// The level that CPUID allows on this machine.
BlasLevel cpu_blas_level();
// The OpenBLAS core type that stands for a level; empty for `other`.
std::string openblas_core_for(BlasLevel level);

struct BlasLibrary {
  using Dgemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha,
                         const double* a, int lda, const double* b, int ldb, double beta, double* c, int ldc);

  std::string name;  // OpenBLAS, BLIS
  std::string version;
  std::string core;      // the core type in use
  std::string detected;  // what the library chose by itself
  Dgemm dgemm = nullptr;
  void (*set_threads)(long) = nullptr;  // where the library does not follow OpenMP by itself

  // "OpenBLAS 0.3.21 (SkylakeX; by itself it chose Prescott)".
  std::string text() const;
  std::string isa() const;
};

// The first of: OpenBLAS built for OpenMP (so that it shares the team's threads), with a core type that uses what the
// CPU has; BLIS built for OpenMP; the same OpenBLAS where it cannot be put right. Measured on Zen 4 and Emerald
// Rapids, OpenBLAS of the right core type beats BLIS. Nothing when there is none; `tried` then says why, a line each.
std::optional<BlasLibrary> load_blas(std::vector<std::string>& tried);

}  // namespace assay::ops
