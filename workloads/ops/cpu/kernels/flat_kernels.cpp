// Passes over flat arrays.
#include "workloads/ops/cpu/kernels/flat_kernels.h"

#include "harness/device/cpu/kernels.h"
#include "workloads/ops/cpu/kernels/staged.h"

namespace assay::ops {
namespace {

using namespace vector;

template <typename In, typename Out>
void elementwise(const void* a, const void* b, void* out, std::int64_t begin, std::int64_t end) {
  const In* x = static_cast<const In*>(a);
  const In* y = static_cast<const In*>(b);
  Out* z = static_cast<Out*>(out);
  if (y)
    for_vectors<4>(begin, end,
                   [&](std::int64_t i, auto count) { store(z + i, load(x + i, count) + load(y + i, count), count); });
  else
    for_vectors<4>(begin, end, [&](std::int64_t i, auto count) { store(z + i, load(x + i, count), count); });
}

template <typename Gradient, typename Parameter>
void adamw(const OptimizerBuffers& buffers, const functors::AdamwUpdate<float>& shared, double decay,
           std::int64_t begin, std::int64_t end) {
  const functors::AdamwUpdate<float> update = shared;
  const float kept = update.keep(decay);
  Block gradients;
  for_blocks(begin, end, [&](std::int64_t first, std::int64_t n) {
    const float* g = staged(static_cast<const Gradient*>(buffers.gradient) + first, gradients.values, n);
    float* w = buffers.master + first;
    float* m = buffers.moment1 + first;
    float* v = buffers.moment2 + first;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) update(w[i], m[i], v[i], g[i], kept);
    if (buffers.parameter) deliver(static_cast<Parameter*>(buffers.parameter) + first, w, n);
  });
}

template <typename Gradient, typename Parameter>
void sgd(const OptimizerBuffers& buffers, const functors::SgdUpdate<float>& shared, double decay, std::int64_t begin,
         std::int64_t end) {
  const functors::SgdUpdate<float> update = shared;
  const float rate = static_cast<float>(decay);
  Block gradients;
  for_blocks(begin, end, [&](std::int64_t first, std::int64_t n) {
    const float* g = staged(static_cast<const Gradient*>(buffers.gradient) + first, gradients.values, n);
    float* w = buffers.master + first;
    float* v = buffers.moment1 + first;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) update(w[i], v[i], g[i], rate);
    if (buffers.parameter) deliver(static_cast<Parameter*>(buffers.parameter) + first, w, n);
  });
}

template <typename T>
double sum_of_squares(const void* data, std::int64_t begin, std::int64_t end) {
  const T* x = static_cast<const T*>(data);
  constexpr int step = lanes / 2;
  Double s0 = {}, s1 = {}, s2 = {}, s3 = {};
  std::int64_t i = begin;
  for (; i + 4 * step <= end; i += 4 * step) {
    const Double a = load_double(x + i), b = load_double(x + i + step);
    const Double c = load_double(x + i + 2 * step), d = load_double(x + i + 3 * step);
    s0 += a * a;
    s1 += b * b;
    s2 += c * c;
    s3 += d * d;
  }
  double total = sum((s0 + s1) + (s2 + s3));
  for (; i < end; i += lanes) {
    const int n = static_cast<int>(end - i < lanes ? end - i : lanes);
    const Float tail = n == lanes ? load(x + i) : load(x + i, n);
    for (int lane = 0; lane < n; ++lane) total += static_cast<double>(tail[lane]) * static_cast<double>(tail[lane]);
  }
  return total;
}

constexpr FlatKernels flat_kernels{
    {{elementwise<float, float>, elementwise<float, bf16>}, {elementwise<bf16, float>, elementwise<bf16, bf16>}},
    {{adamw<float, float>, adamw<float, bf16>}, {adamw<bf16, float>, adamw<bf16, bf16>}},
    {{sgd<float, float>, sgd<float, bf16>}, {sgd<bf16, float>, sgd<bf16, bf16>}},
    {sum_of_squares<float>, sum_of_squares<bf16>}};

}  // namespace

}  // namespace assay::ops

template <>
const assay::ops::FlatKernels assay::cpu::KernelsFor<assay::ops::FlatKernels, assay::cpu::Isa::ASSAY_ISA>::table =
    assay::ops::flat_kernels;
