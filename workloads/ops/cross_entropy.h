// Softmax and cross-entropy in one pass over logits, with label smoothing and ignored targets.
#pragma once

#include "workloads/ops/op.h"

#include <optional>
#include <string>

namespace assay::ops {

// Row r with target t adds lse(logits) - (1 - smoothing) * logits[t] - smoothing * mean(logits) to the loss, computed
// in at least f32 and summed in f64; target `ignored` adds nothing and its gradient is zero.
struct CrossEntropyDesc {
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  std::int64_t stride = 0;   // elements from row to row; at least classes
  DType dtype = DType::f32;  // type of logits and their gradient
  double smoothing = 0;
  std::int32_t ignored = -100;
  bool gradient = true;  // false in evaluation

  bool operator==(const CrossEntropyDesc&) const = default;
};

// Why no device could make this op; nothing if it is valid.
std::optional<std::string> problem_of(const CrossEntropyDesc& desc);

// Sums over targets, kept on the device.
struct LossSums {
  double loss = 0;  // sum over valid targets, in nats
  std::int64_t valid = 0;
  std::int64_t correct = 0;  // rows whose largest logit (the first, if tied) is the target's
};

class CrossEntropy : public OpOf<CrossEntropyDesc> {
 public:
  struct Args {
    void* logits = nullptr;                 // (rows, classes); overwritten with its gradient
    const std::int32_t* targets = nullptr;  // (rows), in [0, classes) or ignored
    const float* scale = nullptr;           // on the device: factor applied to the gradient of the summed loss
    LossSums* sums = nullptr;               // on the device; added to
    void* row_losses = nullptr;             // (rows) f32 (f64 for f64), each row's loss; may be null
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

}  // namespace assay::ops
