// Layer norm or RMS norm, with the residual add in front of it.
#pragma once

#include "workloads/nn/builder.h"

#include <string>

namespace assay::nn {

struct NormShape {
  ops::NormKind kind = ops::NormKind::layer;
  std::int64_t columns = 0;
  double epsilon = 1e-5;
  bool bias = true;  // layer norm only
};

class Norm {
 public:
  // Parameters NAME.weight and, with a bias, NAME.bias, in the builder's scope.
  Norm(const Builder& builder, std::string name, const NormShape& shape);

  // Normalises x or x + residual, (rows, columns), which is then sum().
  Tensor forward(Builder& builder, Tensor x, Tensor residual, std::int64_t rows);
  Tensor sum() const { return sum_; }
  // The output of the last forward pass again, to the bit.
  Tensor recompute(Builder& builder) const;

  // The gradient of both x and residual; dsum (may be absent) is the gradient of sum from other consumers. Overwrites
  // dsum, else dy.
  Tensor backward(Builder& builder, Tensor dy, Tensor dsum = {});

 private:
  ops::NormDesc desc(const Builder& builder, bool residual) const;
  // Reads `x` and, where there is one, `residual`, whose sum it writes to `sum`.
  void normalise(Builder& builder, Tensor x, Tensor residual, Tensor sum, Tensor y) const;

  std::string name_;
  NormShape shape_;
  Parameter weight_, bias_;
  std::int64_t rows_ = 0;
  Tensor sum_, mean_, inverse_;
};

}  // namespace assay::nn
