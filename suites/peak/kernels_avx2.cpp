// AVX2 with FMA: 12 sums hide 5 cycles of latency on 2 ports and leave registers for the operands.
#include "suites/peak/loop.h"

#include <immintrin.h>

namespace assay::peak {

namespace {

struct F64 {
  using Register = __m256d;
  using Sum = __m256d;
  static Register load(const void* p) { return _mm256_load_pd(static_cast<const double*>(p)); }
  static Sum start(int i) { return _mm256_set1_pd(i); }
  static Sum add(Sum sum, Register x, Register y) { return _mm256_fmadd_pd(x, y, sum); }
  static void store(void* p, Sum sum) { _mm256_storeu_pd(static_cast<double*>(p), sum); }
};

struct F32 {
  using Register = __m256;
  using Sum = __m256;
  static Register load(const void* p) { return _mm256_load_ps(static_cast<const float*>(p)); }
  static Sum start(int i) { return _mm256_set1_ps(static_cast<float>(i)); }
  static Sum add(Sum sum, Register x, Register y) { return _mm256_fmadd_ps(x, y, sum); }
  static void store(void* p, Sum sum) { _mm256_storeu_ps(static_cast<float*>(p), sum); }
};

}  // namespace

void avx2_f64(const Operands& operands, std::int64_t pairs, void* sums) { accumulate<F64, 12>(operands, pairs, sums); }
void avx2_f32(const Operands& operands, std::int64_t pairs, void* sums) { accumulate<F32, 12>(operands, pairs, sums); }

}  // namespace assay::peak
