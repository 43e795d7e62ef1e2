// SSE2: a multiply and an add, since there is no FMA. 8 sums leave registers for operands and products.
#include "suites/peak/loop.h"

#include <emmintrin.h>

namespace assay::peak {

namespace {

struct F64 {
  using Register = __m128d;
  using Sum = __m128d;
  static Register load(const void* p) { return _mm_load_pd(static_cast<const double*>(p)); }
  static Sum start(int i) { return _mm_set1_pd(i); }
  static Sum add(Sum sum, Register x, Register y) {
    // Hides x from the compiler, which would otherwise multiply only once for all sums.
    asm volatile("" : "+x"(x));
    return _mm_add_pd(sum, _mm_mul_pd(x, y));
  }
  static void store(void* p, Sum sum) { _mm_storeu_pd(static_cast<double*>(p), sum); }
};

struct F32 {
  using Register = __m128;
  using Sum = __m128;
  static Register load(const void* p) { return _mm_load_ps(static_cast<const float*>(p)); }
  static Sum start(int i) { return _mm_set1_ps(static_cast<float>(i)); }
  static Sum add(Sum sum, Register x, Register y) {
    asm volatile("" : "+x"(x));
    return _mm_add_ps(sum, _mm_mul_ps(x, y));
  }
  static void store(void* p, Sum sum) { _mm_storeu_ps(static_cast<float*>(p), sum); }
};

}  // namespace

void sse_f64(const Operands& operands, std::int64_t pairs, void* sums) { accumulate<F64, 8>(operands, pairs, sums); }
void sse_f32(const Operands& operands, std::int64_t pairs, void* sums) { accumulate<F32, 8>(operands, pairs, sums); }

}  // namespace assay::peak
