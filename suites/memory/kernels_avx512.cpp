// Memory kernels in avx512.
#include "suites/memory/kernel_loops.h"

#include <immintrin.h>

namespace assay::memory {

namespace {

struct Vector {
  using Register = __m512d;
  static constexpr std::size_t width = 8;
  static constexpr bool streams = true;
  static Register set(double value) { return _mm512_set1_pd(value); }
  static Register load(const double* from) { return _mm512_load_pd(from); }
  static void store(double* to, Register value) { _mm512_store_pd(to, value); }
  static void stream(double* to, Register value) { _mm512_stream_pd(to, value); }
  static Register add(Register a, Register b) { return _mm512_add_pd(a, b); }
  static Register multiply(Register a, Register b) { return _mm512_mul_pd(a, b); }
  static void fence() { _mm_sfence(); }
};

constexpr KernelSet set = make_set<Vector>("avx512");

}  // namespace

const KernelSet* avx512_kernels() { return &set; }

}  // namespace assay::memory
