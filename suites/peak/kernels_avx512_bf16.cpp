// AVX-512 BF16: vdpbf16ps adds two products to each f32 sum.
#include "suites/peak/loop.h"

#include <immintrin.h>

namespace assay::peak {

namespace {

struct Bf16 {
  using Register = __m512bh;
  using Sum = __m512;
  static Register load(const void* p) { return (__m512bh)_mm512_load_si512(p); }
  static Sum start(int i) { return _mm512_set1_ps(static_cast<float>(i)); }
  static Sum add(Sum sum, Register x, Register y) { return _mm512_dpbf16_ps(sum, x, y); }
  static void store(void* p, Sum sum) { _mm512_storeu_ps(p, sum); }
};

}  // namespace

void avx512_bf16(const Operands& operands, std::int64_t pairs, void* sums) {
  accumulate<Bf16, 24>(operands, pairs, sums);
}

}  // namespace assay::peak
