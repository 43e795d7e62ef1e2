// y = x W^T + bias, with an optional epilogue before y is stored.
#pragma once

#include "workloads/nn/builder.h"

#include <string>

namespace assay::nn {

class Linear {
 public:
  // Parameters NAME.weight (out, in) and, with `bias`, NAME.bias (out), in the builder's scope. With `fp8` its three
  // products have 8-bit operands.
  Linear(const Builder& builder, std::string name, std::int64_t in, std::int64_t out, bool bias, bool fp8 = false);

  // x (rows, in) to (rows, out). With a gelu epilogue, the input of gelu is kept for backward.
  Tensor forward(Builder& builder, Tensor x, std::int64_t rows, ops::Epilogue epilogue = ops::Epilogue::none);

  struct Into {
    Tensor dx = {};    // receives the input's gradient, else a new tensor does; may be dy if `add`
    bool add = false;  // to the content of dx
    // Multiplies by the derivative of the gelu that made x, whose input is `aux`.
    ops::Epilogue epilogue = ops::Epilogue::none;
    Tensor aux = {};
  };
  // Gradients of weight and bias, then of x: (rows, in).
  Tensor backward(Builder& builder, Tensor dy);
  Tensor backward(Builder& builder, Tensor dy, const Into& into);

  // The same if the last forward pass ended with gelu and dy is the gradient after it.
  Tensor backward_through_gelu(Builder& builder, Tensor dy, ops::ActivationKind kind);

  // Replaces the input of the last forward pass by x, its recomputation for the backward pass.
  void refresh(Builder& builder, Tensor x);
  // The input of the gelu in the last forward pass.
  Tensor before_epilogue() const { return aux_; }

 private:
  Rounded rounded_input(Builder& builder, Tensor x, bool plain) const;
  Rounded rounded_gradient(Builder& builder, Tensor dy) const;
  void append_fp8_weight_gradient(Builder& builder, const Rounded& dy) const;

  std::string name_;
  std::int64_t in_, out_;
  Parameter weight_, bias_;
  bool fp8_;
  std::int64_t rows_ = 0;
  Tensor x_, aux_;
  Rounded x8_;
};

// Appends dw (out, in) = or += dy^T x and, with a bias, its gradient; dy (rows, out), x (rows, in) from row `x_row` on.
void append_weight_gradient(Builder& builder, Parameter weight, Parameter bias, Tensor dy, Tensor x, std::int64_t rows,
                            std::int64_t in, std::int64_t out, std::int64_t x_row = 0);

}  // namespace assay::nn
