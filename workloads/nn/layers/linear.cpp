#include "workloads/nn/layers/linear.h"

namespace assay::nn {

using ops::MatmulArgs;

Linear::Linear(const Builder& builder, std::string name, std::int64_t in, std::int64_t out, bool bias, bool fp8)
    : name_(std::move(name)), in_(in), out_(out), weight_(builder.parameter(name_ + ".weight")), fp8_(fp8) {
  if (bias) bias_ = builder.parameter(name_ + ".bias");
}

Rounded Linear::rounded_input(Builder& builder, Tensor x, bool plain) const {
  return builder.rounded(x, {.name = "input",
                             .from = builder.compute(),
                             .rows = rows_,
                             .columns = in_,
                             .plain = plain,
                             .transposed = builder.kept_for_backward()});
}

// The same pass over memory computes the bias gradient.
Rounded Linear::rounded_gradient(Builder& builder, Tensor dy) const {
  return builder.rounded(dy, {.name = "gradient",
                              .from = builder.compute(),
                              .to = DType::fp8_e5m2,
                              .rows = rows_,
                              .columns = out_,
                              .transposed = true,
                              .column_sums = bias_});
}

Tensor Linear::forward(Builder& builder, Tensor x, std::int64_t rows, ops::Epilogue epilogue) {
  const Builder::Scope scope(builder, name_);
  rows_ = rows;
  x_ = x;
  ops::MatmulDesc desc{.m = rows, .n = out_, .k = in_, .out = builder.compute(), .transpose_b = true};
  desc.a = desc.b = fp8_ ? DType::fp8_e4m3 : builder.product();
  desc.bias = static_cast<bool>(bias_);
  desc.bias_type = builder.bias_type();
  desc.epilogue = epilogue;
  Rounded w8;
  if (fp8_) {
    x8_ = rounded_input(builder, x, true);
    w8 = builder.rounded_weight(weight_);
  }
  const auto op = fp8_ ? builder.op<ops::Matmul>(desc) : builder.weight_matmul(desc);
  const Tensor a = fp8_ ? x8_.plain : x, w = fp8_ ? w8.plain : builder.operand(weight_, op);
  const Tensor y = builder.tensor("out", rows * out_, builder.compute());
  aux_ = epilogue == ops::Epilogue::none ? Tensor{} : builder.tensor("linear", rows * out_, builder.compute());
  builder.run(op,
              {{&MatmulArgs::a, a},
               {&MatmulArgs::b, w},
               {&MatmulArgs::bias, builder.bias(bias_)},
               {&MatmulArgs::scale_a, x8_.inverse},
               {&MatmulArgs::scale_b, w8.inverse}},
              {{&MatmulArgs::out, y}, {&MatmulArgs::aux, aux_}});
  return y;
}

void Linear::refresh(Builder& builder, Tensor x) {
  const Builder::Scope scope(builder, name_);
  x_ = x;
  if (fp8_) x8_ = rounded_input(builder, x, false);
}

Tensor Linear::backward(Builder& builder, Tensor dy) { return backward(builder, dy, Into{}); }

Tensor Linear::backward(Builder& builder, Tensor dy, const Into& into) {
  const Builder::Scope scope(builder, name_);
  Rounded dy8, w8;
  if (fp8_) {
    dy8 = rounded_gradient(builder, dy);
    w8 = builder.rounded_weight(weight_);
    append_fp8_weight_gradient(builder, dy8);
  } else {
    append_weight_gradient(builder, weight_, bias_, dy, x_, rows_, in_, out_);
  }
  ops::MatmulDesc desc{.m = rows_, .n = in_, .k = out_, .out = builder.compute(), .transpose_b = fp8_};
  desc.a = fp8_ ? DType::fp8_e5m2 : builder.product();
  desc.b = fp8_ ? DType::fp8_e4m3 : builder.product();
  desc.epilogue = into.epilogue;
  desc.accumulate = into.add;
  const auto op = fp8_ ? builder.op<ops::Matmul>(desc) : builder.weight_matmul(desc);
  const Tensor a = fp8_ ? dy8.plain : dy, w = fp8_ ? w8.transposed : builder.operand(weight_, op);
  const Tensor dx = into.dx ? into.dx : builder.tensor("dx", rows_ * in_, builder.compute());
  builder.run(op,
              {{&MatmulArgs::a, a},
               {&MatmulArgs::b, w},
               {&MatmulArgs::aux, into.aux},
               into.add ? dx : Tensor{},
               {&MatmulArgs::scale_a, dy8.inverse},
               {&MatmulArgs::scale_b, w8.inverse}},
              {{&MatmulArgs::out, dx}});
  return dx;
}

void Linear::append_fp8_weight_gradient(Builder& builder, const Rounded& dy) const {
  ops::MatmulDesc desc{
      .m = out_, .n = in_, .k = rows_, .a = DType::fp8_e5m2, .b = DType::fp8_e4m3, .transpose_b = true};
  desc.out = builder.gradient_type();
  desc.accumulate = builder.adds_to(weight_);
  builder.run(builder.op<ops::Matmul>(desc),
              {{&MatmulArgs::a, dy.transposed},
               {&MatmulArgs::b, x8_.transposed},
               {&MatmulArgs::scale_a, dy.inverse},
               {&MatmulArgs::scale_b, x8_.inverse}},
              {{&MatmulArgs::out, builder.gradient(weight_)}});
}

Tensor Linear::backward_through_gelu(Builder& builder, Tensor dy, ops::ActivationKind kind) {
  {
    const Builder::Scope scope(builder, name_);
    const ops::ActivationDesc desc{kind, rows_, out_, builder.compute()};
    using GeluArgs = ops::ActivationBackward::Args;
    builder.run(builder.op<ops::ActivationBackward>(desc), {{&GeluArgs::x, aux_}, {&GeluArgs::dy, dy}},
                {{&GeluArgs::dx, aux_}});
  }
  return backward(builder, aux_);
}

void append_weight_gradient(Builder& builder, Parameter weight, Parameter bias, Tensor dy, Tensor x, std::int64_t rows,
                            std::int64_t in, std::int64_t out, std::int64_t x_row) {
  ops::MatmulDesc desc{.m = out, .n = in, .k = rows, .out = builder.gradient_type(), .transpose_a = true};
  desc.a = desc.b = builder.product();
  desc.row_sums = static_cast<bool>(bias);
  desc.accumulate = builder.adds_to(weight);
  if (bias) builder.adds_to(bias);
  const std::size_t skip = static_cast<std::size_t>(x_row * in) * size_of(builder.compute());
  builder.run(builder.op<ops::Matmul>(desc), {{&MatmulArgs::a, dy}, {&MatmulArgs::b, x, skip}},
              {{&MatmulArgs::out, builder.gradient(weight)}, {&MatmulArgs::row_sums, builder.gradient(bias)}});
}

}  // namespace assay::nn
