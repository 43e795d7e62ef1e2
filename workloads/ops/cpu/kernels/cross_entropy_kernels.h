// Softmax cross-entropy of one row of logits; kernels of cross_entropy.cpp.
#pragma once

#include <cstdint>

namespace assay::ops {

struct CrossEntropyRow {
  void* logits = nullptr;  // (classes)
  std::int64_t classes = 0;
  std::int64_t target = 0;
  double smoothing = 0;
  const float* scale = nullptr;  // null: no gradient
  float* scratch = nullptr;      // (classes), for the gradient in bf16
  double loss = 0;               // result
  bool correct = false;          // result: the largest logit (the first, if tied) is the target's
};

struct CrossEntropyKernels {
  using Row = void (*)(CrossEntropyRow&);
  Row f32, bf16;
};

}  // namespace assay::ops
