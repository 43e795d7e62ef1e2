#include "workloads/nn/layers/mlp.h"

namespace assay::nn {

namespace {

bool gated(const MlpShape& shape) { return shape.kind == ops::ActivationKind::silu_gate; }

Linear first(const Builder& builder, const std::string& name, const MlpShape& shape) {
  if (gated(shape)) return Linear(builder, name + ".gate_up", shape.width, 2 * shape.hidden, shape.bias, builder.fp8());
  return Linear(builder, name + ".in", shape.width, shape.hidden, shape.bias, builder.fp8());
}

}  // namespace

Mlp::Mlp(const Builder& builder, std::string name, const MlpShape& shape)
    : name_(std::move(name)),
      shape_(shape),
      in_(first(builder, name_, shape)),
      out_(builder, name_ + ".out", shape.hidden, shape.width, shape.bias, builder.fp8()) {}

Tensor Mlp::hidden(Builder& builder, Tensor x, std::int64_t rows) {
  rows_ = rows;
  if (!gated(shape_)) {
    const bool tanh = shape_.kind == ops::ActivationKind::gelu_tanh;
    return in_.forward(builder, x, rows, tanh ? ops::Epilogue::gelu_tanh : ops::Epilogue::gelu_erf);
  }
  gate_up_ = in_.forward(builder, x, rows);
  return activated(builder, gate_up_);
}

Tensor Mlp::activated(Builder& builder, Tensor x) const {
  const Builder::Scope scope(builder, name_);
  const Tensor y = builder.tensor("hidden", rows_ * shape_.hidden, builder.compute());
  const ops::ActivationDesc desc{shape_.kind, rows_, shape_.hidden, builder.compute()};
  using Args = ops::ActivationForward::Args;
  builder.run(builder.op<ops::ActivationForward>(desc), {{&Args::x, x}}, {{&Args::y, y}});
  return y;
}

void Mlp::refresh(Builder& builder, Tensor x) {
  in_.refresh(builder, x);
  out_.refresh(builder, activated(builder, gated(shape_) ? gate_up_ : in_.before_epilogue()));
}

Tensor Mlp::forward(Builder& builder, Tensor x, std::int64_t rows) {
  return out_.forward(builder, hidden(builder, x, rows), rows);
}

void Mlp::recompute(Builder& builder, Tensor x, std::int64_t rows) { out_.refresh(builder, hidden(builder, x, rows)); }

Tensor Mlp::backward(Builder& builder, Tensor dy, const Linear::Into& into) {
  if (!gated(shape_)) {
    const bool tanh = shape_.kind == ops::ActivationKind::gelu_tanh;
    const auto epilogue = tanh ? ops::Epilogue::gelu_tanh_gradient : ops::Epilogue::gelu_erf_gradient;
    const Tensor dz = out_.backward(builder, dy, {.epilogue = epilogue, .aux = in_.before_epilogue()});
    return in_.backward(builder, dz, into);
  }
  const Tensor dhidden = out_.backward(builder, dy);
  {
    const Builder::Scope scope(builder, name_);
    const ops::ActivationDesc desc{shape_.kind, rows_, shape_.hidden, builder.compute()};
    using Args = ops::ActivationBackward::Args;
    builder.run(builder.op<ops::ActivationBackward>(desc), {{&Args::x, gate_up_}, {&Args::dy, dhidden}},
                {{&Args::dx, gate_up_}});
  }
  return in_.backward(builder, gate_up_, into);
}

}  // namespace assay::nn
