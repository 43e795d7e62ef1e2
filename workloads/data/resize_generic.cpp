// Portable kernels: fixed-length inner loops that compilers vectorise for the baseline.
#include "workloads/data/resize_kernels.h"

#include <cstring>

namespace assay::data::detail {

namespace {

constexpr int lanes = 16;

void vertical(const std::uint8_t* const* rows, const float* weights, int taps, int count, float* out) {
  for (int i = 0; i < count; i += lanes) {
    float sum[lanes] = {};
    for (int tap = 0; tap < taps; ++tap) {
      const std::uint8_t* row = rows[tap] + i;
      for (int lane = 0; lane < lanes; ++lane) sum[lane] += weights[tap] * static_cast<float>(row[lane]);
    }
    std::memcpy(out + i, sum, sizeof sum);
  }
}

void horizontal(const float* row, const int* first, const float* weights, int taps, int outputs, const float* scale,
                const float* bias, float* out) {
  for (int o = 0; o < outputs; ++o, weights += taps * 4, out += 3) {
    float sum[4] = {};
    const float* pixel = row + first[o] * 4;
    for (int tap = 0; tap < taps; ++tap)
      for (int lane = 0; lane < 4; ++lane) sum[lane] += weights[tap * 4 + lane] * pixel[tap * 4 + lane];
    for (int channel = 0; channel < 3; ++channel) out[channel] = sum[channel] * scale[channel] + bias[channel];
  }
}

void to_bf16(const float* in, std::uint16_t* out, int count) {
  for (int i = 0; i < count; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, in + i, sizeof bits);
    out[i] = static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }
}

}  // namespace

const ResizeKernels generic_kernels{"generic", vertical, horizontal, to_bf16};

}  // namespace assay::data::detail
