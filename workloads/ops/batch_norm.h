// Batch norm over the channels of NHWC images, with a fused residual add and ReLU.
#pragma once

#include "workloads/ops/op.h"

#include <optional>
#include <string>

namespace assay::ops {

// y = relu(scale * (x - mean) / sqrt(variance + epsilon) + shift + residual), residual and ReLU being optional.
// Training: mean and biased variance of the batch; running statistics r = (1 - momentum) r + momentum * batch, with the
// unbiased variance, as in PyTorch. Evaluation: running statistics. Statistics and parameters are f32 (f64 for f64).
struct BatchNormDesc {
  std::int64_t rows = 0;  // N * H * W
  std::int64_t channels = 0;
  DType dtype = DType::f32;  // type of x, y, residual and their gradients
  bool relu = false;
  bool residual = false;
  bool training = true;
  double epsilon = 1e-5;
  double momentum = 0.1;
  bool accumulate = false;     // backward adds to the parameters' gradients
  bool two_gradients = false;  // backward also reads dy_other

  bool operator==(const BatchNormDesc&) const = default;
};

// Why no device could make this op; nothing if it is valid.
std::optional<std::string> problem_of(const BatchNormDesc& desc);

class BatchNormForward : public OpOf<BatchNormDesc> {
 public:
  struct Args {
    const void* x = nullptr;         // (rows, channels)
    const void* residual = nullptr;  // (rows, channels)
    const void* scale = nullptr;     // (channels)
    const void* shift = nullptr;     // (channels)
    void* running_mean = nullptr;    // (channels); read in evaluation
    void* running_variance = nullptr;
    bool update_running = true;  // false if the forward pass is recomputed for the backward pass
    void* y = nullptr;           // (rows, channels)
    void* saved_mean = nullptr;  // (channels), training only
    void* saved_inverse_deviation = nullptr;
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

class BatchNormBackward : public OpOf<BatchNormDesc> {
 public:
  struct Args {
    const void* dy = nullptr;        // (rows, channels)
    const void* dy_other = nullptr;  // (rows, channels), with two_gradients: added to dy (a branch joins here)
    const void* x = nullptr;         // (rows, channels)
    const void* y = nullptr;         // (rows, channels); shows which elements passed ReLU
    const void* scale = nullptr;
    const void* shift = nullptr;  // (channels), or null: lets a device compute from x which elements passed ReLU
    const void* saved_mean = nullptr;
    const void* saved_inverse_deviation = nullptr;
    void* dx = nullptr;         // (rows, channels); may be dy or dy_other if in_place()
    void* dresidual = nullptr;  // (rows, channels); the same, but not dx
    void* dscale = nullptr;     // (channels)
    void* dshift = nullptr;     // (channels)
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
  // Whether output gradients may overwrite input gradients.
  virtual bool in_place() const { return true; }
};

}  // namespace assay::ops
