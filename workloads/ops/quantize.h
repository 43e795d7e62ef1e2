// Rounding to 8-bit floats with a scale for each tensor, and the scales' own step (delayed scaling, as in NVIDIA's
// Transformer Engine: the scale of this step comes of the largest magnitudes of the last ones).
#pragma once

#include "workloads/ops/op.h"
#include "workloads/ops/step_state.h"

#include <optional>
#include <string>

namespace assay::ops {

// y = x * scale, rounded to `to`; what is beyond its largest number becomes that one. Products want the terms of their
// sums side by side, so a tensor that takes part in two is written both ways.
struct QuantizeDesc {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  DType from = DType::bf16;    // f32, bf16, fp16
  DType to = DType::fp8_e4m3;  // fp8_e4m3, fp8_e5m2
  bool plain = true;           // writes y
  bool transposed = false;     // writes y_transposed
  bool column_sums = false;    // writes or adds the sums of x's columns: the bias gradient of a product that x is the
  bool accumulate = false;     // output's gradient of; accumulate: adds

  bool operator==(const QuantizeDesc&) const = default;
};
std::optional<std::string> problem_of(const QuantizeDesc& desc);

class Quantize : public Op {
 public:
  struct Args {
    const void* x = nullptr;       // (rows, columns)
    void* y = nullptr;             // (rows, columns)
    void* y_transposed = nullptr;  // (columns, rows)
    const float* scale = nullptr;  // one number in the device's memory
    float* amax = nullptr;         // one number that rises to the largest |x|, to NaN where there is one; may be null
    float* column_sums = nullptr;  // (columns)
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

// For each tensor: the history moves on by one and takes in amax (what is not finite as 0, so that it does not count);
// scale = largest / (the history's maximum * 2^margin), 1 where the maximum is 0. An amax that is not finite sets the
// state's found_infinity: rounding would hide it.
struct ScaleUpdateDesc {
  std::int64_t tensors = 0;
  std::int64_t length = 16;  // of each history
  int margin = 0;            // powers of two kept free above the history's maximum

  bool operator==(const ScaleUpdateDesc&) const = default;
};
std::optional<std::string> problem_of(const ScaleUpdateDesc& desc);

class ScaleUpdate : public Op {
 public:
  struct Args {
    const float* amax = nullptr;     // (tensors)
    float* history = nullptr;        // (tensors, length), the latest last
    const float* largest = nullptr;  // (tensors): of the type, 448 or 57,344
    float* scale = nullptr;          // (tensors)
    float* inverse = nullptr;        // (tensors): 1 / scale
    StepState* state = nullptr;      // on the device; may be null
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

}  // namespace assay::ops
