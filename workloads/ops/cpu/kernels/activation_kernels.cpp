// GELU and the SiLU gate, one block at a time.
#include "workloads/ops/cpu/kernels/activation_kernels.h"

#include "harness/device/cpu/kernels.h"
#include "workloads/ops/cpu/kernels/staged.h"
#include "workloads/ops/functors/activation.h"

namespace assay::ops {
namespace {

using namespace vector;

template <typename T, typename F>
void gelu_forward(const void* x, void* y, std::int64_t, std::int64_t begin, std::int64_t end) {
  Block in, out;
  for_blocks<T>(begin, end, [&](std::int64_t first, std::int64_t n) {
    T* to = static_cast<T*>(y) + first;
    const float* a = staged(static_cast<const T*>(x) + first, in.values, n);
    float* b = place_for(to, out.values);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) b[i] = F{}(a[i]);
    deliver(to, b, n);
  });
}

template <typename T, typename F>
void gelu_backward(const void* x, const void* dy, void* dx, std::int64_t, std::int64_t begin, std::int64_t end) {
  Block in, slope, out;
  for_blocks<T>(begin, end, [&](std::int64_t first, std::int64_t n) {
    T* to = static_cast<T*>(dx) + first;
    const float* a = staged(static_cast<const T*>(x) + first, in.values, n);
    const float* g = staged(static_cast<const T*>(dy) + first, slope.values, n);
    float* b = place_for(to, out.values);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) b[i] = g[i] * F{}(a[i]);
    deliver(to, b, n);
  });
}

template <typename T>
void silu_forward(const void* x, void* y, std::int64_t columns, std::int64_t begin, std::int64_t end) {
  Block gates, ups, out;
  for (std::int64_t row = begin; row < end; ++row)
    for_blocks(0, columns, [&](std::int64_t first, std::int64_t n) {
      const T* from = static_cast<const T*>(x) + row * 2 * columns + first;
      T* to = static_cast<T*>(y) + row * columns + first;
      fetch(from + 2 * columns, n);
      fetch(from + 3 * columns, n);
      const float* gate = staged(from, gates.values, n);
      const float* up = staged(from + columns, ups.values, n);
      float* b = place_for(to, out.values);
#pragma GCC ivdep
      for (std::int64_t i = 0; i < n; ++i) b[i] = functors::SiluGate{}(gate[i], up[i]);
      deliver(to, b, n);
    });
}

template <typename T>
void silu_backward(const void* x, const void* dy, void* dx, std::int64_t columns, std::int64_t begin,
                   std::int64_t end) {
  Block gates, ups, slope, dgates, dups;
  for (std::int64_t row = begin; row < end; ++row)
    for_blocks(0, columns, [&](std::int64_t first, std::int64_t n) {
      const T* from = static_cast<const T*>(x) + row * 2 * columns + first;
      T* to = static_cast<T*>(dx) + row * 2 * columns + first;
      fetch(from + 2 * columns, n);
      fetch(from + 3 * columns, n);
      const float* gate = staged(from, gates.values, n);
      const float* up = staged(from + columns, ups.values, n);
      const float* g = staged(static_cast<const T*>(dy) + row * columns + first, slope.values, n);
      float* dgate = place_for(to, dgates.values);
      float* dup = place_for(to + columns, dups.values);
#pragma GCC ivdep
      for (std::int64_t i = 0; i < n; ++i) {
        const functors::SiluGateGradients<float> d = functors::SiluGateGradient{}(gate[i], up[i], g[i]);
        dgate[i] = d.gate;
        dup[i] = d.up;
      }
      deliver(to, dgate, n);
      deliver(to + columns, dup, n);
    });
}

template <typename T>
constexpr ActivationKernels::Type kernels_of = {
    {gelu_forward<T, functors::GeluTanh>, gelu_backward<T, functors::GeluTanhGradient>},
    {gelu_forward<T, functors::GeluErf>, gelu_backward<T, functors::GeluErfGradient>},
    {silu_forward<T>, silu_backward<T>}};

constexpr ActivationKernels activation_kernels{kernels_of<float>, kernels_of<bf16>};

}  // namespace

}  // namespace assay::ops

template <>
const assay::ops::ActivationKernels
    assay::cpu::KernelsFor<assay::ops::ActivationKernels, assay::cpu::Isa::ASSAY_ISA>::table =
        assay::ops::activation_kernels;
