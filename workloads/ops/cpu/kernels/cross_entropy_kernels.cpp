// Softmax cross-entropy of a row, which stays in the second-level cache between its passes. Sums of up to `block`
// elements are f32 by lane, theirs f64.
#include "workloads/ops/cpu/kernels/cross_entropy_kernels.h"

#include "harness/device/cpu/kernels.h"
#include "harness/device/cpu/vector/vector.h"
#include "workloads/ops/cpu/kernels/math.h"

#include <type_traits>

namespace assay::ops {
namespace {

using namespace vector;

// x with lanes from n on set to `other`.
inline Float keep_or(Float x, Full, float) { return x; }
inline Float keep_or(Float x, int n, float other) {
  Int index;
  for (int i = 0; i < lanes; ++i) index[i] = i;
  return index < n ? x : splat(other);
}

constexpr int block = 64 * lanes;

// The f64 sum over i in [0, n) of value(i, count), whose lanes beyond count are zero.
template <typename Value>
double sum_of(std::int64_t n, const Value& value) {
  double total = 0;
  for (std::int64_t begin = 0; begin < n; begin += block) {
    Float part[4] = {};
    const std::int64_t end = begin + block < n ? begin + block : n;
    for_vectors<4>(begin, end, [&](std::int64_t i, auto count) { part[i / lanes % 4] += value(i, count); });
    total += static_cast<double>(vector::sum((part[0] + part[1]) + (part[2] + part[3])));
  }
  return total;
}

template <typename T>
void row(CrossEntropyRow& r) {
  T* x = static_cast<T*>(r.logits);
  const std::int64_t n = r.classes;
  const auto at = [&](std::int64_t i) { return load(x + i, 1)[0]; };

  Float most[4];
  for (Float& m : most) m = splat(-__builtin_inff());
  for_vectors<4>(0, n, [&](std::int64_t i, auto count) {
    const Float v = load(x + i, count);
    most[i / lanes % 4] = maximum(most[i / lanes % 4], keep_or(v, count, -__builtin_inff()));
  });
  const float largest_logit = largest(maximum(maximum(most[0], most[1]), maximum(most[2], most[3])));
  const float own = at(r.target);
  r.correct = own == largest_logit;
  for (std::int64_t i = 0; r.correct && i < r.target; ++i) r.correct = at(i) != largest_logit;

  // f32: the exponentials stay in the row, so that the gradient need not compute them again.
  constexpr bool kept = std::is_same_v<T, float>;
  const double mean = r.smoothing > 0 ? sum_of(n, [&](std::int64_t i, auto count) { return load(x + i, count); }) /
                                            static_cast<double>(n)
                                      : 0.0;
  const bool gradient = r.scale != nullptr;
  const double sum = sum_of(n, [&](std::int64_t i, auto count) {
    const Float e = keep(exponential(load(x + i, count) - largest_logit), count);
    if constexpr (kept)
      if (gradient) store(x + i, e, count);
    return e;
  });
  const double log_sum = static_cast<double>(largest_logit) + __builtin_log(sum);
  r.loss = log_sum - (1.0 - r.smoothing) * static_cast<double>(own) - r.smoothing * mean;
  if (!gradient) return;

  const double scale = static_cast<double>(*r.scale);
  const auto factor = static_cast<float>(scale / sum);
  const auto shift = static_cast<float>(scale * r.smoothing / static_cast<double>(n));
  const float own_exponential = kept ? at(r.target) : exponential(splat(own - largest_logit))[0];
  for_vectors<4>(0, n, [&](std::int64_t i, auto count) {
    const Float v = load(x + i, count);
    const Float e = kept ? v : exponential(v - largest_logit);
    store(x + i, e * factor - shift, count);
  });
  const double own_gradient =
      scale * (static_cast<double>(own_exponential) / sum - (1.0 - r.smoothing) - r.smoothing / static_cast<double>(n));
  store(x + r.target, splat(static_cast<float>(own_gradient)), 1);
}

constexpr CrossEntropyKernels cross_entropy_kernels{row<float>, row<bf16>};

}  // namespace

template <>
const CrossEntropyKernels cpu::KernelsFor<CrossEntropyKernels, cpu::Isa::ASSAY_ISA>::table = ops::cross_entropy_kernels;

}  // namespace assay::ops
