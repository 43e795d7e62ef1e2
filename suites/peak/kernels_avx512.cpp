// AVX-512F: 16 sums.
#include "suites/peak/loop.h"

#include <immintrin.h>

namespace assay::peak {

namespace {

struct F64 {
  using Register = __m512d;
  using Sum = __m512d;
  static Register load(const void* p) { return _mm512_load_pd(p); }
  static Sum start(int i) { return _mm512_set1_pd(i); }
  static Sum add(Sum sum, Register x, Register y) { return _mm512_fmadd_pd(x, y, sum); }
  static void store(void* p, Sum sum) { _mm512_storeu_pd(p, sum); }
};

struct F32 {
  using Register = __m512;
  using Sum = __m512;
  static Register load(const void* p) { return _mm512_load_ps(p); }
  static Sum start(int i) { return _mm512_set1_ps(static_cast<float>(i)); }
  static Sum add(Sum sum, Register x, Register y) { return _mm512_fmadd_ps(x, y, sum); }
  static void store(void* p, Sum sum) { _mm512_storeu_ps(p, sum); }
};

}  // namespace

void avx512_f64(const Operands& operands, std::int64_t pairs, void* sums) {
  accumulate<F64, 16>(operands, pairs, sums);
}
void avx512_f32(const Operands& operands, std::int64_t pairs, void* sums) {
  accumulate<F32, 16>(operands, pairs, sums);
}

}  // namespace assay::peak
