// The loops, over a vector type V that the file of each instruction set defines. Only those files include this one.
// They are compiled with different flags and must share nothing, hence the unnamed namespace.
#pragma once

#include "suites/memory/kernels.h"

namespace assay::memory {
namespace {

// One kind of store, so that each loop is written only once.
template <typename V>
struct Plain {
  static void store(double* to, typename V::Register value) { V::store(to, value); }
  static void finish() {}
};
template <typename V>
struct NonTemporal {
  static void store(double* to, typename V::Register value) { V::stream(to, value); }
  static void finish() { V::fence(); }
};

// Eight independent sums, so that loads are the bottleneck, not the latency of adds.
template <typename V>
double read_loop(double*, const double* x, const double*, std::size_t n) {
  constexpr std::size_t step = 8 * V::width;
  typename V::Register sums[8];
  for (auto& sum : sums) sum = V::set(0);
  std::size_t i = 0;
  for (; i + step <= n; i += step)
    for (std::size_t k = 0; k < 8; ++k) sums[k] = V::add(sums[k], V::load(x + i + k * V::width));
  for (; i < n; i += V::width) sums[0] = V::add(sums[0], V::load(x + i));
  for (std::size_t k = 1; k < 8; ++k) sums[0] = V::add(sums[0], sums[k]);
  alignas(64) double lanes[V::width];
  V::store(lanes, sums[0]);
  double total = 0;
  for (const double lane : lanes) total += lane;
  return total;
}

// out[i] = value(i), one vector per iteration: four loads followed by four stores are 3 % slower beyond the caches
// (Zen 4).
template <typename V, typename Store, typename F>
double store_loop(double* out, std::size_t n, const F& value) {
#pragma GCC unroll 1
  for (std::size_t i = 0; i < n; i += V::width) Store::store(out + i, value(i));
  Store::finish();
  return 0;
}

template <typename V, typename Store>
double write_loop(double* out, const double*, const double*, std::size_t n) {
  const auto w = V::set(written);
  return store_loop<V, Store>(out, n, [&](std::size_t) { return w; });
}
template <typename V, typename Store>
double copy_loop(double* out, const double* x, const double*, std::size_t n) {
  return store_loop<V, Store>(out, n, [&](std::size_t i) { return V::load(x + i); });
}
template <typename V, typename Store>
double scale_loop(double* out, const double* x, const double*, std::size_t n) {
  const auto s = V::set(factor);
  return store_loop<V, Store>(out, n, [&](std::size_t i) { return V::multiply(s, V::load(x + i)); });
}
template <typename V, typename Store>
double add_loop(double* out, const double* x, const double* y, std::size_t n) {
  return store_loop<V, Store>(out, n, [&](std::size_t i) { return V::add(V::load(x + i), V::load(y + i)); });
}
template <typename V, typename Store>
double triad_loop(double* out, const double* x, const double* y, std::size_t n) {
  const auto s = V::set(factor);
  return store_loop<V, Store>(out, n,
                              [&](std::size_t i) { return V::add(V::load(x + i), V::multiply(s, V::load(y + i))); });
}

template <typename V>
constexpr KernelSet make_set(const char* isa) {
  using P = Plain<V>;
  KernelSet set{
      isa, {read_loop<V>, write_loop<V, P>, copy_loop<V, P>, scale_loop<V, P>, add_loop<V, P>, triad_loop<V, P>}, {}};
  if constexpr (V::streams) {
    using N = NonTemporal<V>;
    const Kernel streaming[6] = {nullptr,          write_loop<V, N>, copy_loop<V, N>,
                                 scale_loop<V, N>, add_loop<V, N>,   triad_loop<V, N>};
    for (int i = 0; i < 6; ++i) set.nontemporal[i] = streaming[i];
  }
  return set;
}

}  // namespace
}  // namespace assay::memory
