// A convolution and the batch norm after it, with ReLU and a residual add if the model has them.
#pragma once

#include "workloads/nn/builder.h"

#include <string>

namespace assay::nn {

// The gradient of a tensor that two branches read: the sum of both, which the consumer forms.
struct TwoGradients {
  Tensor first;
  Tensor second;  // may be absent
};

class ConvNorm {
 public:
  // Parameters CONV.weight (K, R, S, C / groups), NORM.weight (K), NORM.bias (K), in the builder's scope. Everything
  // but dtypes comes from `desc`.
  ConvNorm(const Builder& builder, std::string conv, std::string norm, const ops::ConvDesc& desc, bool relu,
           double epsilon = 1e-5, double momentum = 0.1);

  // x (N, H, W, C) to (N, P, Q, K); residual (N, P, Q, K) may be absent.
  Tensor forward(Builder& builder, Tensor x, Tensor residual = {});
  // Repeats the convolution for the backward pass and, with `whole`, what follows it (without a residual). Without
  // `whole`, the statistics and the output of the forward pass are still used.
  Tensor recompute(Builder& builder, Tensor x, bool whole);

  struct Gradients {
    Tensor dx;        // absent unless requested
    Tensor residual;  // absent if there was no residual
  };
  Gradients backward(Builder& builder, TwoGradients dy, bool wants_dx = true);

  std::int64_t p() const { return desc_.p(); }
  std::int64_t q() const { return desc_.q(); }
  std::int64_t channels() const { return desc_.k; }

 private:
  ops::BatchNormDesc norm_desc(const Builder& builder) const;
  Tensor convolve(Builder& builder, Tensor x);
  Tensor normalise(Builder& builder, Tensor residual);

  std::string conv_name_, norm_name_;
  ops::ConvDesc desc_;
  bool relu_;
  bool residual_ = false;
  double epsilon_, momentum_;
  Parameter weight_, scale_, shift_;
  Tensor x_, conv_, y_, mean_, inverse_;
};

}  // namespace assay::nn
