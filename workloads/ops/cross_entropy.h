// Softmax and cross-entropy in one pass over logits, with label smoothing and ignored targets.
#pragma once

#include "workloads/ops/op.h"

#include <optional>
#include <string>

namespace assay::ops {

// Row r with target t adds lse(logits) - (1 - smoothing) * logits[t] - smoothing * mean(logits) to the loss, computed
// in f32 or better and summed in f64; target `ignored` adds nothing and its gradient is zero.
struct CrossEntropyDesc {
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  std::int64_t stride = 0;   // elements from row to row; at least classes
  DType dtype = DType::f32;  // of logits and their gradient
  double smoothing = 0;
  std::int32_t ignored = -100;
  bool gradient = true;  // false in evaluation

  bool operator==(const CrossEntropyDesc&) const = default;
};

// Why no device could make this op; nothing when it is sound.
std::optional<std::string> problem_of(const CrossEntropyDesc& desc);

// What a pass over targets adds up; on the device.
struct LossSums {
  double loss = 0;  // sum over valid targets, in nats
  std::int64_t valid = 0;
  std::int64_t correct = 0;  // the first of the largest logits is the target
};

class CrossEntropy : public Op {
 public:
  struct Args {
    void* logits = nullptr;                 // (rows, classes); holds its gradient afterwards
    const std::int32_t* targets = nullptr;  // (rows), in [0, classes) or ignored
    const float* scale = nullptr;           // on the device: what the gradient of the summed loss is multiplied by
    LossSums* sums = nullptr;               // on the device; added to
    void* row_losses = nullptr;             // (rows) f32 (f64 for f64), each row's loss; null: not wanted
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

}  // namespace assay::ops
