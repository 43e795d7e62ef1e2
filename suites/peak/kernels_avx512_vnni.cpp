// AVX-512 VNNI: vpdpbusd adds four u8 x s8 products to each s32 sum.
#include "suites/peak/loop.h"

#include <immintrin.h>

namespace assay::peak {

namespace {

struct Int8 {
  using Register = __m512i;
  using Sum = __m512i;
  static Register load(const void* p) { return _mm512_load_si512(p); }
  static Sum start(int i) { return _mm512_set1_epi32(i); }
  static Sum add(Sum sum, Register x, Register y) { return _mm512_dpbusd_epi32(sum, x, y); }
  static void store(void* p, Sum sum) { _mm512_storeu_si512(p, sum); }
};

}  // namespace

void avx512_vnni(const Operands& operands, std::int64_t pairs, void* sums) {
  accumulate<Int8, 16>(operands, pairs, sums);
}

}  // namespace assay::peak
