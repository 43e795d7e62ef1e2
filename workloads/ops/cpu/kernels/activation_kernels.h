// GELU and the SiLU gate; kernels of activation.cpp.
#pragma once

#include <cstdint>

namespace assay::ops {

// GELU: elements [begin, end) of flat arrays. SiLU gate: rows [begin, end) of `columns`; x and dx are twice as wide.
struct ActivationKernels {
  using Forward = void (*)(const void* x, void* y, std::int64_t columns, std::int64_t begin, std::int64_t end);
  using Backward = void (*)(const void* x, const void* dy, void* dx, std::int64_t columns, std::int64_t begin,
                            std::int64_t end);
  struct Kind {
    Forward forward;
    Backward backward;
  };
  struct Type {
    Kind gelu_tanh, gelu_erf, silu_gate;
  };
  Type f32, bf16;
};

}  // namespace assay::ops
