#include "workloads/nn/layers/pool.h"

namespace assay::nn {

Tensor Pool::forward(Builder& builder, Tensor x) {
  const Builder::Scope scope(builder, name_);
  desc_.dtype = builder.compute();
  const auto op = builder.op<ops::PoolForward>(desc_);
  const Tensor y = builder.tensor("out", desc_.n * desc_.p() * desc_.q() * desc_.c, builder.compute());
  const Tensor saved = saved_ = builder.opaque("saved", op->saved_bytes());
  builder.run(op, {x}, {y, saved}, [=](const Places& at) {
    return ops::PoolForward::Args{.x = at.at(x), .y = at.at(y), .saved = at.at(saved)};
  });
  return y;
}

Tensor Pool::backward(Builder& builder, Tensor dy) {
  const Builder::Scope scope(builder, name_);
  const Tensor dx = builder.tensor("dx", desc_.n * desc_.h * desc_.w * desc_.c, builder.compute()), saved = saved_;
  builder.run(builder.op<ops::PoolBackward>(desc_), {dy, saved}, {dx}, [=](const Places& at) {
    return ops::PoolBackward::Args{.dy = at.at(dy), .saved = at.at(saved), .dx = at.at(dx)};
  });
  return dx;
}

Tensor append_add(Builder& builder, Tensor a, Tensor b, std::int64_t elements) {
  const ops::ElementwiseDesc desc{ops::ElementwiseKind::add, elements, builder.compute(), builder.compute()};
  builder.run(builder.op<ops::Elementwise>(desc), {a, b}, {a},
              [=](const Places& at) { return ops::Elementwise::Args{.a = at.at(a), .b = at.at(b), .out = at.at(a)}; });
  return a;
}

Tensor append_cast(Builder& builder, Tensor x, std::int64_t elements, DType from) {
  if (size_of(from) == size_of(builder.compute())) return x;
  const Tensor y = builder.tensor("cast", elements, builder.compute());
  const ops::ElementwiseDesc desc{ops::ElementwiseKind::cast, elements, from, builder.compute()};
  builder.run(builder.op<ops::Elementwise>(desc), {x}, {y},
              [=](const Places& at) { return ops::Elementwise::Args{.a = at.at(x), .out = at.at(y)}; });
  return y;
}

}  // namespace assay::nn
