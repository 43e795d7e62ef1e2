// Softmax cross-entropy of one row of logits; the table behind cross_entropy.cpp.
#pragma once

#include <cstdint>

namespace assay::ops {

struct CrossEntropyRow {
  void* logits = nullptr;  // (classes)
  std::int64_t classes = 0;
  std::int64_t target = 0;
  double smoothing = 0;
  const float* scale = nullptr;  // null: the gradient is not wanted
  float* scratch = nullptr;      // (classes), for bf16 with its gradient
  double loss = 0;               // written
  bool correct = false;          // written: the first of the largest logits is the target
};

struct CrossEntropyKernels {
  using Row = void (*)(CrossEntropyRow&);
  Row f32, bf16;
};

}  // namespace assay::ops
