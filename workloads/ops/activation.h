// GELU, and the SiLU gate of Llama's MLP, each with its gradient.
#pragma once

#include "workloads/ops/op.h"

namespace assay::ops {

enum class ActivationKind {
  gelu_tanh,  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), GPT-2
  gelu_erf,   // x * normal CDF(x), BERT
  silu_gate,  // silu(gate) * up; each row of x holds gate, then up
};

// x (rows, columns) to y (rows, columns); for silu_gate x is (rows, 2 * columns), gate first.
struct ActivationDesc {
  ActivationKind kind = ActivationKind::gelu_tanh;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  DType dtype = DType::f32;

  bool operator==(const ActivationDesc&) const = default;
};

class ActivationForward : public OpOf<ActivationDesc> {
 public:
  struct Args {
    const void* x = nullptr;
    void* y = nullptr;
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

class ActivationBackward : public OpOf<ActivationDesc> {
 public:
  struct Args {
    const void* x = nullptr;   // the input of the forward op
    const void* dy = nullptr;  // (rows, columns)
    void* dx = nullptr;        // shape of x; may be x
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

}  // namespace assay::ops
