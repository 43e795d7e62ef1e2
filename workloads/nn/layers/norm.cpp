#include "workloads/nn/layers/norm.h"

#include <utility>

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
  const auto op = builder.op<ops::NormForward>(desc(builder, static_cast<bool>(residual)));
  const Tensor weight = builder.weight(weight_), bias = builder.weight(bias_), mean = mean_, inverse = inverse_;
  builder.run(op, {x, residual, weight, bias}, {sum, y, mean, inverse}, [=](const Places& at) {
    return ops::NormForward::Args{.x = at.at(x),
                                  .residual = at.at(residual),
                                  .sum = at.at(sum),
                                  .weight = at.at(weight),
                                  .bias = at.at(bias),
                                  .y = at.at(y),
                                  .saved_mean = at.at(mean),
                                  .saved_inverse_deviation = at.at(inverse)};
  });
}

Tensor Norm::backward(Builder& builder, Tensor dy, Tensor dsum) {
  const Builder::Scope scope(builder, name_);
  ops::NormDesc backward = desc(builder, false);
  backward.accumulate = builder.adds_to(weight_);
  if (bias_) builder.adds_to(bias_);
  const auto op = builder.op<ops::NormBackward>(backward);
  const Tensor dx = dsum ? dsum : dy;
  const Tensor weight = builder.weight(weight_), dweight = builder.gradient(weight_), dbias = builder.gradient(bias_);
  const Tensor sum = sum_, mean = mean_, inverse = inverse_;
  builder.run(op, {dy, dsum, sum, weight, mean, inverse}, {dx, dweight, dbias}, [=](const Places& at) {
    return ops::NormBackward::Args{.dy = at.at(dy),
                                   .sum = at.at(sum),
                                   .weight = at.at(weight),
                                   .saved_mean = at.at(mean),
                                   .saved_inverse_deviation = at.at(inverse),
                                   .dsum = at.at(dsum),
                                   .dx = at.at(dx),
                                   .dweight = at.at(dweight),
                                   .dbias = at.at(dbias)};
  });
  return dx;
}

}  // namespace assay::nn
