// Softmax cross-entropy of a row, which stays in the second-level cache between its passes. Short sums in f32 are added
// in f64.
#include "workloads/ops/cpu/kernels/cross_entropy_kernels.h"

#include "harness/device/cpu/kernels.h"
#include "harness/device/cpu/vector/vector.h"
#include "workloads/ops/cpu/kernels/math.h"

namespace assay::ops {
namespace {

using namespace vector;

// x, with lanes from n on set to `other`.
inline Float keep_or(Float x, Full, float) { return x; }
inline Float keep_or(Float x, int n, float other) {
  Int index;
  for (int i = 0; i < lanes; ++i) index[i] = i;
  return index < n ? x : splat(other);
}

// Elements summed in f32, by lane, before they are added in f64.
constexpr std::int64_t block = 64 * lanes;

inline Double sum_by_lane(Float x) {
  float part[lanes];
  store(part, x);
  return load_double(part) + load_double(part + lanes / 2);
}

// Calls visit(i, count, which) for the vectors of [begin, end); `which` selects one of four independent accumulators.
template <typename Visit>
inline void visit_by_four(std::int64_t begin, std::int64_t end, const Visit& visit) {
  std::int64_t i = begin;
  for (; i + 4 * lanes <= end; i += 4 * lanes) {
    visit(i, Full{}, 0);
    visit(i + lanes, Full{}, 1);
    visit(i + 2 * lanes, Full{}, 2);
    visit(i + 3 * lanes, Full{}, 3);
  }
  for_vectors(i, end, [&](std::int64_t j, auto count) { visit(j, count, 0); });
}

// The f64 sum over i in [0, n) of value(i, count), whose lanes beyond count are zero.
template <typename Value>
inline double sum_of(std::int64_t n, const Value& value) {
  Double total = {};
  for (std::int64_t begin = 0; begin < n; begin += block) {
    Float part[4] = {};
    visit_by_four(begin, begin + block < n ? begin + block : n,
                  [&](std::int64_t i, auto count, int which) { part[which] += value(i, count); });
    total += sum_by_lane((part[0] + part[1]) + (part[2] + part[3]));
  }
  return vector::sum(total);
}

template <typename T>
inline float max_of(const T* x, std::int64_t n) {
  Float max[4];
  for (Float& m : max) m = splat(-__builtin_inff());
  visit_by_four(0, n, [&](std::int64_t i, auto count, int which) {
    max[which] = maximum(max[which], keep_or(load(x + i, count), count, -__builtin_inff()));
  });
  return largest(maximum(maximum(max[0], max[1]), maximum(max[2], max[3])));
}

// Where exponentials are kept for the gradient. f32: in the row itself. bf16: in `scratch`, since the row would round
// them.
inline float* exponentials_of(float* x, float*) { return x; }
inline float* exponentials_of(bf16*, float* scratch) { return scratch; }

template <typename T>
void row(CrossEntropyRow& r) {
  T* x = static_cast<T*>(r.logits);
  const std::int64_t n = r.classes;
  const auto at = [&](std::int64_t i) { return load(x + i, 1)[0]; };
  const float top = max_of(x, n), own = at(r.target);
  r.correct = own == top;
  for (std::int64_t i = 0; r.correct && i < r.target; ++i) r.correct = at(i) != top;
  const double count_of_classes = static_cast<double>(n);
  double mean = 0;
  if (r.smoothing > 0)
    mean = sum_of(n, [&](std::int64_t i, auto count) { return load(x + i, count); }) / count_of_classes;
  if (!r.scale) {
    const double sum =
        sum_of(n, [&](std::int64_t i, auto count) { return keep(exponential(load(x + i, count) - top), count); });
    r.loss = static_cast<double>(top) + __builtin_log(sum) - (1 - r.smoothing) * static_cast<double>(own) -
             r.smoothing * mean;
    return;
  }
  float* kept = exponentials_of(x, r.scratch);
  const double sum = sum_of(n, [&](std::int64_t i, auto count) {
    const Float e = keep(exponential(load(x + i, count) - top), count);
    store(kept + i, e, count);
    return e;
  });
  r.loss =
      static_cast<double>(top) + __builtin_log(sum) - (1 - r.smoothing) * static_cast<double>(own) - r.smoothing * mean;
  const double scale = static_cast<double>(*r.scale);
  const auto factor = static_cast<float>(scale / sum);
  const auto shift = static_cast<float>(scale * r.smoothing / count_of_classes);
  const double own_gradient =
      scale * (static_cast<double>(kept[r.target]) / sum - (1 - r.smoothing) - r.smoothing / count_of_classes);
  for_vectors<4>(0, n,
                 [&](std::int64_t i, auto count) { store(x + i, load(kept + i, count) * factor - shift, count); });
  store(x + r.target, splat(static_cast<float>(own_gradient)), 1);
}

constexpr CrossEntropyKernels cross_entropy_kernels{row<float>, row<bf16>};

}  // namespace

}  // namespace assay::ops

template <>
const assay::ops::CrossEntropyKernels
    assay::cpu::KernelsFor<assay::ops::CrossEntropyKernels, assay::cpu::Isa::ASSAY_ISA>::table =
        assay::ops::cross_entropy_kernels;
