// AVX-VNNI: vpdpbusd on 256 bits, for processors without AVX-512.
#include "suites/peak/loop.h"

#include <immintrin.h>

namespace assay::peak {

namespace {

struct Int8 {
  using Register = __m256i;
  using Sum = __m256i;
  static Register load(const void* p) { return _mm256_load_si256(static_cast<const __m256i*>(p)); }
  static Sum start(int i) { return _mm256_set1_epi32(i); }
  static Sum add(Sum sum, Register x, Register y) { return _mm256_dpbusd_avx_epi32(sum, x, y); }
  static void store(void* p, Sum sum) { _mm256_storeu_si256(static_cast<__m256i*>(p), sum); }
};

}  // namespace

void avx_vnni(const Operands& operands, std::int64_t pairs, void* sums) { accumulate<Int8, 12>(operands, pairs, sums); }

}  // namespace assay::peak
