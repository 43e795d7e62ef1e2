#include "workloads/nn/layers/linear.h"

#include <utility>

namespace assay::nn {

Linear::Linear(const Builder& builder, std::string name, std::int64_t in, std::int64_t out, bool bias)
    : name_(std::move(name)), in_(in), out_(out), weight_(builder.parameter(name_ + ".weight")) {
  if (bias) bias_ = builder.parameter(name_ + ".bias");
}

Tensor Linear::forward(Builder& builder, Tensor x, std::int64_t rows, ops::Epilogue epilogue) {
  const Builder::Scope scope(builder, name_);
  rows_ = rows;
  x_ = x;
  ops::MatmulDesc desc;
  desc.m = rows;
  desc.n = out_;
  desc.k = in_;
  desc.a = desc.b = builder.product();
  desc.out = builder.compute();
  desc.transpose_b = true;
  desc.bias = static_cast<bool>(bias_);
  desc.bias_type = builder.master();
  desc.epilogue = epilogue;
  const auto op = builder.weight_matmul(desc);
  const Tensor w = builder.operand(weight_, op);
  const Tensor y = builder.tensor("out", rows * out_, builder.compute());
  aux_ = epilogue == ops::Epilogue::none ? Tensor{} : builder.tensor("linear", rows * out_, builder.compute());
  const Tensor bias = builder.weight(bias_), aux = aux_;
  builder.run(op, {x, w, bias}, {y, aux}, [=](const Places& at) {
    return ops::MatmulArgs{.a = at.at(x), .b = at.at(w), .out = at.at(y), .bias = at.at(bias), .aux = at.at(aux)};
  });
  return y;
}

Tensor Linear::backward(Builder& builder, Tensor dy) { return backward(builder, dy, Into{}); }

Tensor Linear::backward(Builder& builder, Tensor dy, const Into& into) {
  const Builder::Scope scope(builder, name_);
  append_weight_gradient(builder, weight_, bias_, dy, x_, rows_, in_, out_);
  ops::MatmulDesc desc;
  desc.m = rows_;
  desc.n = in_;
  desc.k = out_;
  desc.a = desc.b = builder.product();
  desc.out = builder.compute();
  desc.epilogue = into.epilogue;
  desc.accumulate = into.add;
  const auto op = builder.weight_matmul(desc);
  const Tensor w = builder.operand(weight_, op);
  const Tensor dx = into.dx ? into.dx : builder.tensor("dx", rows_ * in_, builder.compute());
  const Tensor aux = into.aux;
  builder.run(op, {dy, w, aux, into.add ? dx : Tensor{}}, {dx}, [=](const Places& at) {
    return ops::MatmulArgs{.a = at.at(dy), .b = at.at(w), .out = at.at(dx), .aux = at.at(aux)};
  });
  return dx;
}

Tensor Linear::backward_through_gelu(Builder& builder, Tensor dy, ops::ActivationKind kind) {
  const Tensor z = aux_;
  {
    const Builder::Scope scope(builder, name_);
    const ops::ActivationDesc desc{kind, rows_, out_, builder.compute()};
    builder.run(builder.op<ops::ActivationBackward>(desc), {z, dy}, {z}, [=](const Places& at) {
      return ops::ActivationBackward::Args{.x = at.at(z), .dy = at.at(dy), .dx = at.at(z)};
    });
  }
  return backward(builder, z);
}

void append_weight_gradient(Builder& builder, Parameter weight, Parameter bias, Tensor dy, Tensor x, std::int64_t rows,
                            std::int64_t in, std::int64_t out, std::int64_t x_row, std::int64_t dy_stride) {
  ops::MatmulDesc desc;
  desc.m = out;
  desc.n = in;
  desc.k = rows;
  desc.a = desc.b = builder.product();
  desc.out = builder.gradient_type();
  desc.transpose_a = true;
  desc.a_stride = dy_stride;
  desc.row_sums = static_cast<bool>(bias);
  desc.accumulate = builder.adds_to(weight);
  if (bias) builder.adds_to(bias);
  const auto op = builder.op<ops::Matmul>(desc);
  const Tensor dw = builder.gradient(weight), db = builder.gradient(bias);
  const std::size_t skip = static_cast<std::size_t>(x_row * in) * size_of(builder.compute());
  builder.run(op, {dy, x}, {dw, db}, [=](const Places& at) {
    return ops::MatmulArgs{.a = at.at(dy), .b = at.as<std::byte>(x) + skip, .out = at.at(dw), .row_sums = at.at(db)};
  });
}

}  // namespace assay::nn
