// Max and average pooling of NHWC images (a window that crosses the edge averages only the elements inside).
#pragma once

#include "workloads/ops/op.h"

#include <compare>
#include <optional>
#include <string>

namespace assay::ops {

enum class PoolKind { maximum, average };

// y (N, P, Q, C) from x (N, H, W, C); a window of H x W with stride 1 is the global average.
struct PoolDesc {
  PoolKind kind = PoolKind::maximum;
  std::int64_t n = 0;
  std::int64_t h = 0;
  std::int64_t w = 0;
  std::int64_t c = 0;
  std::int64_t window_h = 1;
  std::int64_t window_w = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  DType dtype = DType::f32;

  std::int64_t p() const { return (h + 2 * padding - window_h) / stride + 1; }
  std::int64_t q() const { return (w + 2 * padding - window_w) / stride + 1; }

  auto operator<=>(const PoolDesc&) const = default;
};

// Why no device could make this op; nothing if it is valid.
std::optional<std::string> problem_of(const PoolDesc& desc);

class PoolForward : public OpOf<PoolDesc> {
 public:
  struct Args {
    const void* x = nullptr;  // (N, H, W, C)
    void* y = nullptr;        // (N, P, Q, C)
    void* saved = nullptr;    // saved_bytes(): which element was the maximum (the first, if tied)
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

class PoolBackward : public OpOf<PoolDesc> {
 public:
  struct Args {
    const void* dy = nullptr;     // (N, P, Q, C)
    const void* saved = nullptr;  // the array that the forward op saved
    void* dx = nullptr;           // (N, H, W, C)
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

}  // namespace assay::ops
