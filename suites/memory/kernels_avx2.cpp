// Memory kernels in avx2.
#include "suites/memory/kernel_loops.h"

#include <immintrin.h>

namespace assay::memory {

namespace {

struct Vector {
  using Register = __m256d;
  static constexpr std::size_t width = 4;
  static constexpr bool streams = true;
  static Register set(double value) { return _mm256_set1_pd(value); }
  static Register load(const double* from) { return _mm256_load_pd(from); }
  static void store(double* to, Register value) { _mm256_store_pd(to, value); }
  static void stream(double* to, Register value) { _mm256_stream_pd(to, value); }
  static Register add(Register a, Register b) { return _mm256_add_pd(a, b); }
  static Register multiply(Register a, Register b) { return _mm256_mul_pd(a, b); }
  static void fence() { _mm_sfence(); }
};

constexpr KernelSet set = make_set<Vector>("avx2");

}  // namespace

const KernelSet* avx2_kernels() { return &set; }

}  // namespace assay::memory
