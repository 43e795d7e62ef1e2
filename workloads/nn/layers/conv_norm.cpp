#include "workloads/nn/layers/conv_norm.h"

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
  conv_ = builder.tensor("out", desc_.n * desc_.p() * desc_.q() * desc_.k, builder.compute());
  using Args = ops::ConvForward::Args;
  builder.run(op, {{&Args::x, x}, {&Args::packed, weights}}, {{&Args::y, conv_}});
  return conv_;
}

Tensor ConvNorm::normalise(Builder& builder, Tensor residual) {
  const Builder::Scope scope(builder, norm_name_);
  const ops::BatchNormDesc desc = norm_desc(builder);
  const auto op = builder.op<ops::BatchNormForward>(desc);
  const auto [running_mean, running_variance] = builder.running("", desc.channels, desc.momentum);
  y_ = builder.tensor("out", desc.rows * desc.channels, builder.compute());
  if (desc.training) {
    mean_ = builder.tensor("mean", desc.channels, builder.statistics());
    inverse_ = builder.tensor("inverse_deviation", desc.channels, builder.statistics());
  }
  const bool update = desc.training && !builder.recomputing();
  using Args = ops::BatchNormForward::Args;
  builder.run(op,
              {{&Args::x, conv_},
               {&Args::residual, residual},
               {&Args::scale, builder.weight(scale_)},
               {&Args::shift, builder.weight(shift_)},
               {&Args::running_mean, running_mean},
               {&Args::running_variance, running_variance}},
              {{&Args::y, y_},
               {&Args::saved_mean, mean_},
               {&Args::saved_inverse_deviation, inverse_},
               update ? running_mean : Tensor{},
               update ? running_variance : Tensor{}},
              {.update_running = update});
  return y_;
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
    using Args = ops::BatchNormBackward::Args;
    builder.run(op,
                {{&Args::dy, first},
                 {&Args::dy_other, second},
                 {&Args::x, conv_},
                 {&Args::y, relu_ ? y_ : Tensor{}},
                 {&Args::scale, builder.weight(scale_)},
                 {&Args::shift, builder.weight(shift_)},
                 {&Args::saved_mean, mean_},
                 {&Args::saved_inverse_deviation, inverse_}},
                {{&Args::dx, dconv},
                 {&Args::dresidual, result.residual},
                 {&Args::dscale, builder.gradient(scale_)},
                 {&Args::dshift, builder.gradient(shift_)}});
  }
  const Builder::Scope scope(builder, conv_name_);
  ops::ConvDesc weights = desc_;
  weights.accumulate = builder.adds_to(weight_);
  using WeightArgs = ops::ConvBackwardWeights::Args;
  builder.run(builder.op<ops::ConvBackwardWeights>(weights), {{&WeightArgs::x, x_}, {&WeightArgs::dy, dconv}},
              {{&WeightArgs::dw, builder.gradient(weight_)}});
  if (!wants_dx) return result;
  const auto [op, packed] = builder.op_and_weights<ops::ConvBackwardData>(desc_, weight_);
  result.dx = builder.tensor("dx", desc_.n * desc_.h * desc_.w * desc_.c, builder.compute());
  using Args = ops::ConvBackwardData::Args;
  builder.run(op, {{&Args::dy, dconv}, {&Args::packed, packed}}, {{&Args::dx, result.dx}});
  return result;
}

}  // namespace assay::nn
