// The feed-forward part of a block: gelu between two products, or Llama's gated form.
#pragma once

#include "workloads/nn/layers/linear.h"

#include <string>

namespace assay::nn {

struct MlpShape {
  ops::ActivationKind kind = ops::ActivationKind::gelu_tanh;
  std::int64_t width = 0;
  std::int64_t hidden = 0;
  bool bias = true;
};

class Mlp {
 public:
  // Parameters NAME.in.* (hidden, width), or for silu_gate NAME.gate_up.* (2 hidden, width), gate first; NAME.out.*.
  Mlp(const Builder& builder, std::string name, const MlpShape& shape);

  // x (rows, width) to (rows, width).
  Tensor forward(Builder& builder, Tensor x, std::int64_t rows);
  // Repeats the forward pass without its last product, whose result backward does not need.
  void recompute(Builder& builder, Tensor x, std::int64_t rows);
  // Before backward, with the input again: computes only the activation again.
  void refresh(Builder& builder, Tensor x);
  Tensor backward(Builder& builder, Tensor dy, const Linear::Into& into);

 private:
  Tensor hidden(Builder& builder, Tensor x, std::int64_t rows);
  Tensor activated(Builder& builder, Tensor x) const;

  std::string name_;
  MlpShape shape_;
  Linear in_, out_;
  std::int64_t rows_ = 0;
  Tensor gate_up_;
};

}  // namespace assay::nn
