// Layer norm and RMS norm over rows, fused with the residual add before them.
#pragma once

#include "workloads/ops/op.h"

#include <optional>
#include <string>

namespace assay::ops {

enum class NormKind { layer, rms };

// sum = x + residual (optional), y = weight * (sum - mean) / sqrt(variance + epsilon) + bias (layer), or
// y = weight * sum / sqrt(mean(sum^2) + epsilon) (rms). Weight, bias and statistics are f32 (f64 for f64).
struct NormDesc {
  NormKind kind = NormKind::layer;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  DType dtype = DType::f32;  // type of x, residual, sum, y and their gradients
  bool residual = false;
  bool bias = true;  // layer norm only
  double epsilon = 1e-5;
  bool accumulate = false;  // backward adds to the parameters' gradients

  bool operator==(const NormDesc&) const = default;
};

// Why no device could make this op; nothing if it is valid.
std::optional<std::string> problem_of(const NormDesc& desc);

class NormForward : public OpOf<NormDesc> {
 public:
  struct Args {
    const void* x = nullptr;                  // (rows, columns)
    const void* residual = nullptr;           // (rows, columns)
    void* sum = nullptr;                      // (rows, columns), written if desc.residual; may be residual
    const void* weight = nullptr;             // (columns)
    const void* bias = nullptr;               // (columns)
    void* y = nullptr;                        // (rows, columns)
    void* saved_mean = nullptr;               // (rows), layer norm only
    void* saved_inverse_deviation = nullptr;  // (rows)
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

class NormBackward : public OpOf<NormDesc> {
 public:
  struct Args {
    const void* dy = nullptr;      // (rows, columns)
    const void* sum = nullptr;     // (rows, columns): the normalised input (x if there is no residual)
    const void* weight = nullptr;  // (columns)
    const void* saved_mean = nullptr;
    const void* saved_inverse_deviation = nullptr;
    const void* dsum = nullptr;  // (rows, columns): gradient of sum from another path, added to dx; or null
    void* dx = nullptr;          // (rows, columns): gradient of both x and residual; may be dsum or dy
    void* dweight = nullptr;     // (columns)
    void* dbias = nullptr;       // (columns)
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

}  // namespace assay::ops
