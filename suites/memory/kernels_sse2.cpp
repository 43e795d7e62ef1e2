// Memory kernels in sse2.
#include "suites/memory/kernel_loops.h"

#include <immintrin.h>

namespace assay::memory {

namespace {

struct Vector {
  using Register = __m128d;
  static constexpr std::size_t width = 2;
  static constexpr bool streams = true;
  static Register set(double value) { return _mm_set1_pd(value); }
  static Register load(const double* from) { return _mm_load_pd(from); }
  static void store(double* to, Register value) { _mm_store_pd(to, value); }
  static void stream(double* to, Register value) { _mm_stream_pd(to, value); }
  static Register add(Register a, Register b) { return _mm_add_pd(a, b); }
  static Register multiply(Register a, Register b) { return _mm_mul_pd(a, b); }
  static void fence() { _mm_sfence(); }
};

constexpr KernelSet set = make_set<Vector>("sse2");

}  // namespace

const KernelSet* baseline_kernels() { return &set; }

}  // namespace assay::memory
