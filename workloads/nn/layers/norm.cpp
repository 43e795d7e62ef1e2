#include "workloads/nn/layers/norm.h"

namespace assay::nn {

Norm::Norm(const Builder& builder, std::string name, const NormShape& shape)
    : name_(std::move(name)), shape_(shape), weight_(builder.parameter(name_ + ".weight")) {
  if (shape.kind == ops::NormKind::layer && shape.bias) bias_ = builder.parameter(name_ + ".bias");
}

ops::NormDesc Norm::desc(const Builder& builder, bool residual) const {
  return {.kind = shape_.kind,
          .rows = rows_,
          .columns = shape_.columns,
          .dtype = builder.compute(),
          .residual = residual,
          .bias = static_cast<bool>(bias_),
          .epsilon = shape_.epsilon};
}

Tensor Norm::forward(Builder& builder, Tensor x, Tensor residual, std::int64_t rows) {
  const Builder::Scope scope(builder, name_);
  rows_ = rows;
  const std::int64_t elements = rows * shape_.columns;
  const Tensor y = builder.tensor("out", elements, builder.compute());
  const Tensor sum = residual ? builder.tensor("sum", elements, builder.compute()) : Tensor{};
  mean_ = shape_.kind == ops::NormKind::layer ? builder.tensor("mean", rows, builder.statistics()) : Tensor{};
  inverse_ = builder.tensor("inverse_deviation", rows, builder.statistics());
  normalise(builder, x, residual, sum, y);
  sum_ = residual ? sum : x;
  return y;
}

Tensor Norm::recompute(Builder& builder) const {
  const Builder::Scope scope(builder, name_);
  const Tensor y = builder.tensor("again", rows_ * shape_.columns, builder.compute());
  normalise(builder, sum_, {}, {}, y);
  return y;
}

void Norm::normalise(Builder& builder, Tensor x, Tensor residual, Tensor sum, Tensor y) const {
  using Args = ops::NormForward::Args;
  const Tensor weight = builder.weight(weight_), bias = builder.weight(bias_);
  builder.run(
      builder.op<ops::NormForward>(desc(builder, static_cast<bool>(residual))),
      {{&Args::x, x}, {&Args::residual, residual}, {&Args::weight, weight}, {&Args::bias, bias}},
      {{&Args::sum, sum}, {&Args::y, y}, {&Args::saved_mean, mean_}, {&Args::saved_inverse_deviation, inverse_}});
}

Tensor Norm::backward(Builder& builder, Tensor dy, Tensor dsum) {
  const Builder::Scope scope(builder, name_);
  ops::NormDesc backward = desc(builder, false);
  backward.accumulate = builder.adds_to(weight_);
  if (bias_) builder.adds_to(bias_);
  const auto op = builder.op<ops::NormBackward>(backward);
  const Tensor dx = dsum ? dsum : dy;
  using Args = ops::NormBackward::Args;
  builder.run(op,
              {{&Args::dy, dy},
               {&Args::dsum, dsum},
               {&Args::sum, sum_},
               {&Args::weight, builder.weight(weight_)},
               {&Args::saved_mean, mean_},
               {&Args::saved_inverse_deviation, inverse_}},
              {{&Args::dx, dx}, {&Args::dweight, builder.gradient(weight_)}, {&Args::dbias, builder.gradient(bias_)}});
  return dx;
}

}  // namespace assay::nn
