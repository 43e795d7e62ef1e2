// Rounding to 8-bit floats with one scale per tensor, and the update of those scales (delayed scaling, as in NVIDIA's
// Transformer Engine: a step's scale is computed from the largest magnitudes of previous steps).
#pragma once

#include "workloads/ops/op.h"
#include "workloads/ops/step_state.h"

#include <optional>
#include <string>

namespace assay::ops {

// y = x * scale, rounded to `to` and clamped to its range. fp8 products need contiguous operands along K, so a tensor
// used in two products is written both plain and transposed.
struct QuantizeDesc {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  DType from = DType::bf16;    // f32, bf16, fp16
  DType to = DType::fp8_e4m3;  // fp8_e4m3, fp8_e5m2
  bool plain = true;           // writes y
  bool transposed = false;     // writes y_transposed
  bool column_sums = false;    // writes the sums of x's columns: the bias gradient if x is a product's output gradient
  bool accumulate = false;     // adds to column_sums instead

  bool operator==(const QuantizeDesc&) const = default;
};
std::optional<std::string> problem_of(const QuantizeDesc& desc);

class Quantize : public OpOf<QuantizeDesc> {
 public:
  struct Args {
    const void* x = nullptr;       // (rows, columns)
    void* y = nullptr;             // (rows, columns)
    void* y_transposed = nullptr;  // (columns, rows)
    const float* scale = nullptr;  // one number in device memory
    float* amax = nullptr;         // one number, raised to the largest |x|, or NaN if x has one; may be null
    float* column_sums = nullptr;  // (columns)
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

// For each tensor: amax is appended to the history (0 if it is not finite) and the oldest entry dropped;
// scale = largest / (the history's maximum * 2^margin), 1 if the maximum is 0. A non-finite amax sets the state's
// found_infinity, since rounding would hide it.
struct ScaleUpdateDesc {
  std::int64_t tensors = 0;
  std::int64_t length = 16;  // entries of each history
  int margin = 0;            // powers of two of headroom above the history's maximum

  bool operator==(const ScaleUpdateDesc&) const = default;
};
std::optional<std::string> problem_of(const ScaleUpdateDesc& desc);

class ScaleUpdate : public OpOf<ScaleUpdateDesc> {
 public:
  struct Args {
    const float* amax = nullptr;     // (tensors)
    float* history = nullptr;        // (tensors, length), the latest last
    const float* largest = nullptr;  // (tensors): the type's maximum, 448 or 57,344
    float* scale = nullptr;          // (tensors)
    float* inverse = nullptr;        // (tensors): 1 / scale
    StepState* state = nullptr;      // on the device; may be null
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

}  // namespace assay::ops
