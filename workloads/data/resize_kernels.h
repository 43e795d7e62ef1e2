// The inner loops of the resize, one file per instruction set, selected at run time for the CPU.
#pragma once

#include <cstdint>
#include <string_view>

namespace assay::data {

// Pixels have 4 elements everywhere (R, G, B, unused), so that a pixel is one vector lane.
struct ResizeKernels {
  const char* isa;
  // out[i] = sum over taps of weights[tap] * rows[tap][i], i in [0, count); up to 64 elements more are read and
  // written.
  void (*vertical)(const std::uint8_t* const* rows, const float* weights, int taps, int count, float* out);
  // out (outputs, 3): pixel o is bias + scale * sum over taps of weights[o][tap] * row[first[o] + tap].
  // `weights` (outputs, taps, 4) repeats each weight four times, 64-byte aligned; `taps` is a multiple of 4.
  void (*horizontal)(const float* row, const int* first, const float* weights, int taps, int outputs,
                     const float* scale, const float* bias, float* out);
  // Rounds to nearest even.
  void (*to_bf16)(const float* in, std::uint16_t* out, int count);
};

// The kernels for "avx512", "avx2" or "generic"; null if the CPU or this build lacks the instruction set.
const ResizeKernels* resize_kernels(std::string_view isa);
// The fastest that the CPU can run.
const ResizeKernels& best_resize_kernels();

namespace detail {
extern const ResizeKernels generic_kernels;
extern const ResizeKernels avx2_kernels;
extern const ResizeKernels avx512_kernels;
}  // namespace detail

}  // namespace assay::data
