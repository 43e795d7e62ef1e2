// Rotary embedding, a vector of pairs at a time.
#include "workloads/ops/cpu/kernels/rotary_kernels.h"

#include "harness/device/cpu/kernels.h"
#include "harness/device/cpu/vector/vector.h"

namespace assay::ops {
namespace {

using namespace vector;

template <typename T>
void token(void* x, const float* cosine, const float* sine, std::int64_t heads, std::int64_t half, float sign) {
  for (std::int64_t h = 0; h < heads; ++h) {
    T* low = static_cast<T*>(x) + h * 2 * half;
    T* high = low + half;
    for_vectors(0, half, [&](std::int64_t i, auto count) {
      const Float c = load(cosine + i, count), s = load(sine + i, count) * sign;
      const Float a = load(low + i, count), b = load(high + i, count);
      store(low + i, a * c - b * s, count);
      store(high + i, b * c + a * s, count);
    });
  }
}

constexpr RotaryKernels rotary_kernels{token<float>, token<bf16>};

}  // namespace

}  // namespace assay::ops

template <>
const assay::ops::RotaryKernels assay::cpu::KernelsFor<assay::ops::RotaryKernels, assay::cpu::Isa::ASSAY_ISA>::table =
    assay::ops::rotary_kernels;
