// Convolution of NHWC images: forward, and the gradients of its input and of its weights.
#pragma once

#include "workloads/ops/op.h"

#include <compare>
#include <optional>
#include <string>

namespace assay::ops {

// y (N, P, Q, K) = x (N, H, W, C) * w (K, R, S, C / groups), cross-correlation, square stride and padding.
// Types: f64; f32; tf32 (stored as f32); bf16 and fp16 with f32 accumulation. The canonical layout of weights and
// their gradient is (K, R, S, C / groups).
struct ConvDesc {
  std::int64_t n = 0;
  std::int64_t h = 0;
  std::int64_t w = 0;
  std::int64_t c = 0;
  std::int64_t k = 0;
  std::int64_t r = 1;
  std::int64_t s = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;  // on each side
  std::int64_t groups = 1;
  DType dtype = DType::f32;      // type of x, y and their gradients
  DType pack_from = DType::f32;  // type of the weights that pack() reads
  DType gradient = DType::f32;   // type of the weights' gradient
  bool accumulate = false;       // adds to the weights' gradient

  std::int64_t p() const { return (h + 2 * padding - r) / stride + 1; }
  std::int64_t q() const { return (w + 2 * padding - s) / stride + 1; }

  auto operator<=>(const ConvDesc&) const = default;
};

// Why no device could make this convolution; nothing if it is valid.
std::optional<std::string> problem_of(const ConvDesc& desc);

// Forward and backward-data read weights in the op's own layout and type.
class PackedWeights : public OpOf<ConvDesc> {
 public:
  virtual std::size_t packed_bytes() const = 0;
  // w (K, R, S, C / groups) of type pack_from.
  virtual void pack(Stream&, const void* w, void* packed) = 0;
};

class ConvForward : public PackedWeights {
 public:
  struct Args {
    const void* x = nullptr;       // (N, H, W, C)
    const void* packed = nullptr;  // packed_bytes()
    void* y = nullptr;             // (N, P, Q, K)
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

class ConvBackwardData : public PackedWeights {
 public:
  struct Args {
    const void* dy = nullptr;      // (N, P, Q, K)
    const void* packed = nullptr;  // packed_bytes()
    void* dx = nullptr;            // (N, H, W, C)
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

class ConvBackwardWeights : public OpOf<ConvDesc> {
 public:
  struct Args {
    const void* x = nullptr;   // (N, H, W, C)
    const void* dy = nullptr;  // (N, P, Q, K)
    void* dw = nullptr;        // (K, R, S, C / groups) of type `gradient`
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

// Which convolutions the cpu backend computes by Winograd's F(2x2, 3x3), for the backend and for plans of its memory.

// F(2x2, 3x3) of Lavin & Gray 2016, "Fast algorithms for convolutional neural networks": a tile of 4 x 4 inputs gives
// 2 x 2 outputs with 16 products per channel pair instead of 36; transformed weights have 16 elements instead of 9.
inline constexpr std::int64_t winograd_positions = 16;
inline constexpr std::int64_t channel_block = 16;  // lanes of the largest vectors

// Whether the op supports the descriptor and is faster than oneDNN's on this CPU, by a fixed rule.
bool winograd_suits(const ConvDesc& desc);

}  // namespace assay::ops
