// Pooling of one thread's rows of pixels; kernels of pool.cpp.
#pragma once

#include "workloads/ops/pool.h"

#include <cstdint>

namespace assay::ops {

// Pixels: a maximum's index in its window is saved in a byte.
inline constexpr std::int64_t max_window = 256;

struct PoolRows {
  PoolDesc desc;
  std::int64_t p = 0;  // desc.p() and desc.q()
  std::int64_t q = 0;
  const void* from = nullptr;      // forward: x (N, H, W, C); backward: dy (N, P, Q, C)
  void* to = nullptr;              // forward: y (N, P, Q, C); backward: dx (N, H, W, C)
  unsigned char* saved = nullptr;  // (N, P, Q, C), maximum only: row * window_w + column in the window
};

struct PoolKernels {
  // Rows [begin, end) of the N * P rows of y, or of the N * H rows of dx.
  using Run = void (*)(const PoolRows&, std::int64_t begin, std::int64_t end);
  struct Typed {
    Run maximum_forward, maximum_backward, average_forward, average_backward;
  };
  Typed f32;
  Typed bf16;
};

}  // namespace assay::ops
