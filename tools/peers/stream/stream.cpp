// A STREAM-like loop: one kernel on arrays far larger than the caches, OpenMP threads, plain or non-temporal stores.
//   stream copy|triad BYTES plain|nontemporal
// BYTES is the size of one array. Prints one JSON line: `value` is the median over 60 passes, `best` the fastest pass,
// which is what STREAM reports. Counts as STREAM does (copy 2N, triad 3N bytes).
#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr double factor = 3.0;

void copy_plain(double* __restrict c, const double* __restrict a, long n) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < n; ++i) c[i] = a[i];
}

void triad_plain(double* __restrict a, const double* __restrict b, const double* __restrict c, long n) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < n; ++i) a[i] = b[i] + factor * c[i];
}

#if defined(__AVX512F__)
constexpr long width = 8;
using Vector = __m512d;
Vector load(const double* p) { return _mm512_load_pd(p); }
void stream(double* p, Vector v) { _mm512_stream_pd(p, v); }
Vector multiply_add(Vector x, Vector y) { return _mm512_add_pd(x, _mm512_mul_pd(_mm512_set1_pd(factor), y)); }
#elif defined(__AVX__)
constexpr long width = 4;
using Vector = __m256d;
Vector load(const double* p) { return _mm256_load_pd(p); }
void stream(double* p, Vector v) { _mm256_stream_pd(p, v); }
Vector multiply_add(Vector x, Vector y) { return _mm256_add_pd(x, _mm256_mul_pd(_mm256_set1_pd(factor), y)); }
#else
constexpr long width = 2;
using Vector = __m128d;
Vector load(const double* p) { return _mm_load_pd(p); }
void stream(double* p, Vector v) { _mm_stream_pd(p, v); }
Vector multiply_add(Vector x, Vector y) { return _mm_add_pd(x, _mm_mul_pd(_mm_set1_pd(factor), y)); }
#endif

void copy_streaming(double* c, const double* a, long n) {
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (long i = 0; i < n / width; ++i) stream(c + i * width, load(a + i * width));
    _mm_sfence();
  }
}

void triad_streaming(double* a, const double* b, const double* c, long n) {
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (long i = 0; i < n / width; ++i) stream(a + i * width, multiply_add(load(b + i * width), load(c + i * width)));
    _mm_sfence();
  }
}

double* array_of(long n, double value) {
  constexpr std::size_t huge_page = std::size_t{2} << 20;
  const std::size_t bytes = (static_cast<std::size_t>(n) * sizeof(double) + huge_page - 1) / huge_page * huge_page;
  void* memory = std::aligned_alloc(huge_page, bytes);
  if (!memory) return nullptr;
  madvise(memory, bytes, MADV_HUGEPAGE);
  double* data = static_cast<double*>(memory);
#pragma omp parallel for schedule(static)
  for (long i = 0; i < n; ++i) data[i] = value;
  return data;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: stream copy|triad BYTES plain|nontemporal\n");
    return 2;
  }
  const bool triad = std::strcmp(argv[1], "triad") == 0;
  const bool streaming = std::strcmp(argv[3], "nontemporal") == 0;
  const long n = std::atol(argv[2]) / 64 * 8;
  double* a = array_of(n, 1.0);
  double* b = array_of(n, 2.0);
  double* c = array_of(n, 0.0);
  if (n <= 0 || !a || !b || !c) {
    std::fprintf(stderr, "stream: no memory for three arrays of %s bytes\n", argv[2]);
    return 1;
  }
  constexpr int warm_up = 10, passes = 60;
  std::vector<double> seconds;
  for (int pass = -warm_up; pass < passes; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    if (triad)
      streaming ? triad_streaming(c, a, b, n) : triad_plain(c, a, b, n);
    else
      streaming ? copy_streaming(c, a, n) : copy_plain(c, a, n);
    if (pass >= 0) seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  for (long i = 0; i < n; ++i)
    if (c[i] != (triad ? 1.0 + factor * 2.0 : 1.0)) {
      std::fprintf(stderr, "stream: element %ld is %g\n", i, c[i]);
      return 1;
    }
  std::sort(seconds.begin(), seconds.end());
  const double bytes = (triad ? 3.0 : 2.0) * 8.0 * static_cast<double>(n);
  std::printf("{\"value\": %.6e, \"unit\": \"B/s\", \"better\": \"higher\", \"best\": %.6e}\n",
              bytes / seconds[seconds.size() / 2], bytes / seconds[0]);
  return 0;
}
