#include "harness/comm/bf16_reduce.h"

namespace assay {

namespace {

float widen(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// bf16's rounding without branches, so that compilers vectorise the loop around it.
std::uint16_t narrow(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40u;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

struct Sum {
  float operator()(float a, float b) const { return a + b; }
};
struct Max {
  float operator()(float a, float b) const { return a > b ? a : b; }
};
struct Min {
  float operator()(float a, float b) const { return a < b ? a : b; }
};

template <typename Op>
void reduce(const bf16* __restrict in, bf16* __restrict in_out, std::size_t count) {
  const Op op;
  for (std::size_t i = 0; i < count; ++i) in_out[i].bits = narrow(op(widen(in[i].bits), widen(in_out[i].bits)));
}

}  // namespace

void reduce_bf16(ReduceOp op, const bf16* in, bf16* in_out, std::size_t count) {
  switch (op) {
    case ReduceOp::sum: return reduce<Sum>(in, in_out, count);
    case ReduceOp::max: return reduce<Max>(in, in_out, count);
    case ReduceOp::min: return reduce<Min>(in, in_out, count);
  }
}

}  // namespace assay
