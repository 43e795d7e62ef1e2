#include "workloads/nn/layers/pool.h"

namespace assay::nn {

Tensor Pool::forward(Builder& builder, Tensor x) {
  const Builder::Scope scope(builder, name_);
  desc_.dtype = builder.compute();
  const auto op = builder.op<ops::PoolForward>(desc_);
  const Tensor y = builder.tensor("out", desc_.n * desc_.p() * desc_.q() * desc_.c, builder.compute());
  saved_ = builder.opaque("saved", op->saved_bytes());
  using Args = ops::PoolForward::Args;
  builder.run(op, {{&Args::x, x}}, {{&Args::y, y}, {&Args::saved, saved_}});
  return y;
}

Tensor Pool::backward(Builder& builder, Tensor dy) {
  const Builder::Scope scope(builder, name_);
  const Tensor dx = builder.tensor("dx", desc_.n * desc_.h * desc_.w * desc_.c, builder.compute());
  using Args = ops::PoolBackward::Args;
  builder.run(builder.op<ops::PoolBackward>(desc_), {{&Args::dy, dy}, {&Args::saved, saved_}}, {{&Args::dx, dx}});
  return dx;
}

Tensor append_add(Builder& builder, Tensor a, Tensor b, std::int64_t elements) {
  const ops::ElementwiseDesc desc{ops::ElementwiseKind::add, elements, builder.compute(), builder.compute()};
  using Args = ops::Elementwise::Args;
  builder.run(builder.op<ops::Elementwise>(desc), {{&Args::a, a}, {&Args::b, b}}, {{&Args::out, a}});
  return a;
}

Tensor append_cast(Builder& builder, Tensor x, std::int64_t elements, DType from) {
  if (size_of(from) == size_of(builder.compute())) return x;
  const Tensor y = builder.tensor("cast", elements, builder.compute());
  const ops::ElementwiseDesc desc{ops::ElementwiseKind::cast, elements, from, builder.compute()};
  using Args = ops::Elementwise::Args;
  builder.run(builder.op<ops::Elementwise>(desc), {{&Args::a, x}}, {{&Args::out, y}});
  return y;
}

}  // namespace assay::nn
