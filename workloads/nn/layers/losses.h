// The end of a model: logits and cross-entropy, and the gradient that the backward pass starts from.
#pragma once

#include "workloads/nn/layers/linear.h"

namespace assay::nn {

// The head of a language model. Holds the logits of only one block of rows at a time: since the scale of the loss's
// gradient is known before the step, each block's gradient is computed immediately.
class LmHead {
 public:
  // weight (vocabulary, width) may be the embedding's; bias may be absent.
  LmHead(Parameter weight, Parameter bias, std::int64_t vocabulary, std::int64_t width)
      : weight_(weight), bias_(bias), vocabulary_(vocabulary), width_(width) {}

  // h (B, T, width) against the batch's targets (B, T). When training: gradients of weight and bias, and dh.
  Tensor forward(Builder& builder, Tensor h) const;

 private:
  Parameter weight_, bias_;
  std::int64_t vocabulary_, width_;
};

// The loss of logits (N, classes), computed from x (N, features), against targets (N).
class Classifier {
 public:
  // Parameters NAME.weight (classes, features) and NAME.bias.
  Classifier(const Builder& builder, const std::string& name, std::int64_t features, std::int64_t classes)
      : linear_(builder, name, features, classes, true), classes_(classes) {}

  // When training: gradients of the parameters, and dx.
  Tensor forward(Builder& builder, Tensor x);

 private:
  Linear linear_;
  std::int64_t classes_;
};

// Rows of logits to hold at once: about `bytes` of them, or a default for CPUs if that is 0; fewer than 2^31 elements.
std::int64_t rows_per_block(std::int64_t rows, std::int64_t columns, DType dtype, std::int64_t bytes);

}  // namespace assay::nn
