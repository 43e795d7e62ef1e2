#include "workloads/nn/layers/conv_norm.h"

#include <utility>

namespace assay::nn {

ConvNorm::ConvNorm(const Builder& builder, std::string conv, std::string norm, const ops::ConvDesc& desc, bool relu,
                   double epsilon, double momentum)
    : conv_name_(std::move(conv)),
      norm_name_(std::move(norm)),
      desc_(desc),
      relu_(relu),
      epsilon_(epsilon),
      momentum_(momentum),
      weight_(builder.parameter(conv_name_ + ".weight")),
      scale_(builder.parameter(norm_name_ + ".weight")),
      shift_(builder.parameter(norm_name_ + ".bias")) {
  desc_.dtype = builder.product();
  desc_.pack_from = builder.master();
  desc_.gradient = builder.gradient_type();
}

ops::BatchNormDesc ConvNorm::norm_desc(const Builder& builder) const {
  return {.rows = desc_.n * desc_.p() * desc_.q(),
          .channels = desc_.k,
          .dtype = builder.compute(),
          .relu = relu_,
          .residual = residual_,
          .training = builder.training(),
          .epsilon = epsilon_,
          .momentum = momentum_};
}

Tensor ConvNorm::convolve(Builder& builder, Tensor x) {
  const Builder::Scope scope(builder, conv_name_);
  x_ = x;
  const auto [op, weights] = builder.op_and_weights<ops::ConvForward>(desc_, weight_);
  const Tensor w = weights;  // lambdas cannot capture structured bindings
  const Tensor y = conv_ = builder.tensor("out", desc_.n * desc_.p() * desc_.q() * desc_.k, builder.compute());
  builder.run(op, {x, w}, {y}, [=](const Places& at) {
    return ops::ConvForward::Args{.x = at.at(x), .packed = at.at(w), .y = at.at(y)};
  });
  return y;
}

Tensor ConvNorm::normalise(Builder& builder, Tensor residual) {
  const Builder::Scope scope(builder, norm_name_);
  const ops::BatchNormDesc desc = norm_desc(builder);
  const auto op = builder.op<ops::BatchNormForward>(desc);
  const auto [running_mean, running_variance] = builder.running("", desc.channels, desc.momentum);
  const Tensor x = conv_, scale = builder.weight(scale_), shift = builder.weight(shift_);
  const Tensor y = y_ = builder.tensor("out", desc.rows * desc.channels, builder.compute());
  if (desc.training) {
    mean_ = builder.tensor("mean", desc.channels, builder.statistics());
    inverse_ = builder.tensor("inverse_deviation", desc.channels, builder.statistics());
  }
  const bool update = desc.training && !builder.recomputing();
  const Tensor mean = mean_, inverse = inverse_;
  builder.run(op, {x, residual, scale, shift, running_mean, running_variance},
              {y, mean, inverse, update ? running_mean : Tensor{}, update ? running_variance : Tensor{}},
              [=, running_mean = running_mean, running_variance = running_variance](const Places& at) {
                return ops::BatchNormForward::Args{.x = at.at(x),
                                                   .residual = at.at(residual),
                                                   .scale = at.at(scale),
                                                   .shift = at.at(shift),
                                                   .running_mean = at.at(running_mean),
                                                   .running_variance = at.at(running_variance),
                                                   .update_running = update,
                                                   .y = at.at(y),
                                                   .saved_mean = at.at(mean),
                                                   .saved_inverse_deviation = at.at(inverse)};
              });
  return y;
}

Tensor ConvNorm::forward(Builder& builder, Tensor x, Tensor residual) {
  residual_ = static_cast<bool>(residual);
  convolve(builder, x);
  return normalise(builder, residual);
}

Tensor ConvNorm::recompute(Builder& builder, Tensor x, bool whole) {
  convolve(builder, x);
  return whole ? normalise(builder, {}) : y_;
}

ConvNorm::Gradients ConvNorm::backward(Builder& builder, TwoGradients dy, bool wants_dx) {
  Gradients result;
  ops::BatchNormDesc norm = norm_desc(builder);
  norm.accumulate = builder.adds_to(scale_);
  builder.adds_to(shift_);
  const std::int64_t elements = norm.rows * norm.channels;
  const Tensor first = dy.first, second = dy.second;
  norm.two_gradients = static_cast<bool>(second);
  Tensor dconv;
  {
    const Builder::Scope scope(builder, norm_name_);
    const auto op = builder.op<ops::BatchNormBackward>(norm);
    // Written over dy if the op works in place. The residual's gradient comes first, since it is dy behind ReLU.
    const auto overwrite = [&](Tensor gradient, const char* name) {
      return gradient && op->in_place() ? gradient : builder.tensor(name, elements, builder.compute());
    };
    if (residual_) result.residual = overwrite(first, "dresidual");
    dconv = overwrite(residual_ ? second : first, "dx");
    const Tensor x = conv_, y = relu_ ? y_ : Tensor{}, mean = mean_, inverse = inverse_;
    const Tensor scale = builder.weight(scale_), shift = builder.weight(shift_);
    const Tensor dresidual = result.residual, dscale = builder.gradient(scale_), dshift = builder.gradient(shift_);
    builder.run(op, {first, second, x, y, scale, shift, mean, inverse}, {dconv, dresidual, dscale, dshift},
                [=](const Places& at) {
                  return ops::BatchNormBackward::Args{.dy = at.at(first),
                                                      .dy_other = at.at(second),
                                                      .x = at.at(x),
                                                      .y = at.at(y),
                                                      .scale = at.at(scale),
                                                      .shift = at.at(shift),
                                                      .saved_mean = at.at(mean),
                                                      .saved_inverse_deviation = at.at(inverse),
                                                      .dx = at.at(dconv),
                                                      .dresidual = at.at(dresidual),
                                                      .dscale = at.at(dscale),
                                                      .dshift = at.at(dshift)};
                });
  }
  const Builder::Scope scope(builder, conv_name_);
  ops::ConvDesc weights = desc_;
  weights.accumulate = builder.adds_to(weight_);
  const Tensor x = x_, dw = builder.gradient(weight_);
  builder.run(builder.op<ops::ConvBackwardWeights>(weights), {x, dconv}, {dw}, [=](const Places& at) {
    return ops::ConvBackwardWeights::Args{.x = at.at(x), .dy = at.at(dconv), .dw = at.at(dw)};
  });
  if (!wants_dx) return result;
  const auto [op, packed] = builder.op_and_weights<ops::ConvBackwardData>(desc_, weight_);
  const Tensor w = packed;
  const Tensor dx = result.dx = builder.tensor("dx", desc_.n * desc_.h * desc_.w * desc_.c, builder.compute());
  builder.run(op, {dconv, w}, {dx}, [=](const Places& at) {
    return ops::ConvBackwardData::Args{.dy = at.at(dconv), .packed = at.at(w), .dx = at.at(dx)};
  });
  return result;
}

}  // namespace assay::nn
