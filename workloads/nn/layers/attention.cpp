#include "workloads/nn/layers/attention.h"

#include <cmath>

namespace assay::nn {

namespace {

Linear projection(const Builder& builder, const std::string& name, std::int64_t in, std::int64_t out, bool bias) {
  return Linear(builder, name, in, out, bias, builder.fp8());
}

// Each row holds queries, keys and values: byte offsets of the latter two.
struct Parts {
  std::size_t k = 0;
  std::size_t v = 0;
};

Parts parts_of(const AttentionShape& shape, DType dtype) {
  const auto bytes = [&](std::int64_t elements) { return static_cast<std::size_t>(elements) * size_of(dtype); };
  return {bytes(shape.heads * shape.head_dim), bytes((shape.heads + shape.kv_heads) * shape.head_dim)};
}

}  // namespace

Attention::Attention(Builder& builder, std::string name, const AttentionShape& shape)
    : name_(std::move(name)),
      shape_(shape),
      qkv_projection_(
          projection(builder, name_ + ".qkv", shape.width, shape.qkv_columns(), shape.bias || shape.qkv_bias)),
      out_projection_(projection(builder, name_ + ".out", shape.heads * shape.head_dim, shape.width, shape.bias)) {}

ops::AttentionDesc Attention::desc(const Builder& builder) const {
  ops::AttentionDesc desc{.batch = builder.batch().samples, .seq = builder.batch().seq, .causal = shape_.causal};
  desc.heads = shape_.heads;
  desc.kv_heads = shape_.kv_heads;
  desc.head_dim = shape_.head_dim;
  desc.lengths = shape_.lengths;
  desc.q_stride = desc.k_stride = desc.v_stride = shape_.qkv_columns();
  desc.dtype = builder.product();
  return desc;
}

void Attention::rotate(Builder& builder, Tensor qkv, bool inverse) const {
  if (!shape_.frequency) return;
  const std::int64_t seq = builder.batch().seq, pairs = shape_.head_dim / 2;
  const auto table = [&](const char* name, double (*function)(double)) {
    return builder.constant(name, seq * pairs, [=, frequency = shape_.frequency](double* values) {
      for (std::int64_t t = 0; t < seq; ++t)
        for (std::int64_t i = 0; i < pairs; ++i)
          values[t * pairs + i] = function(static_cast<double>(t) * frequency(i));
    });
  };
  const Tensor cosine = table("rotary/cosine", std::cos), sine = table("rotary/sine", std::sin);
  ops::RotaryDesc desc{.batch = builder.batch().samples, .seq = seq, .inverse = inverse, .dtype = builder.compute()};
  desc.heads = shape_.heads + shape_.kv_heads;
  desc.head_dim = shape_.head_dim;
  desc.stride = shape_.qkv_columns();
  const Builder::Scope scope(builder, "rotary");
  using Args = ops::Rotary::Args;
  builder.run(builder.op<ops::Rotary>(desc), {{&Args::x, qkv}, {&Args::cosine, cosine}, {&Args::sine, sine}}, {qkv});
}

Tensor Attention::mix(Builder& builder, Tensor x) {
  const ops::AttentionDesc attention = desc(builder);
  const std::int64_t rows = attention.batch * attention.seq;
  qkv_ = qkv_projection_.forward(builder, x, rows);
  const Builder::Scope scope(builder, name_);
  rotate(builder, qkv_, false);
  out_ = builder.tensor("mix", rows * shape_.heads * shape_.head_dim, builder.compute());
  const auto op = builder.op<ops::AttentionForward>(attention);
  // Rows beyond a sequence's length have no sum of exponentials, so probes must not inspect them.
  const std::int64_t sums = rows * shape_.heads;
  log_sum_exp_ = shape_.lengths
                     ? builder.opaque("log_sum_exp", static_cast<std::size_t>(sums) * size_of(builder.statistics()))
                     : builder.tensor("log_sum_exp", sums, builder.statistics());
  const Tensor lengths = shape_.lengths ? builder.input(Input::lengths, attention.batch) : Tensor{};
  const Parts part = parts_of(shape_, builder.compute());
  using Args = ops::AttentionForward::Args;
  builder.run(op, {{&Args::q, qkv_}, {&Args::k, qkv_, part.k}, {&Args::v, qkv_, part.v}, {&Args::lengths, lengths}},
              {{&Args::out, out_}, {&Args::log_sum_exp, log_sum_exp_}});
  return out_;
}

Tensor Attention::forward(Builder& builder, Tensor x) {
  const Tensor out = mix(builder, x);
  return out_projection_.forward(builder, out, builder.batch().samples * builder.batch().seq);
}

Tensor Attention::backward(Builder& builder, Tensor dy, const Linear::Into& into) {
  const ops::AttentionDesc attention = desc(builder);
  const Tensor dout = out_projection_.backward(builder, dy);
  const Tensor dqkv = [&] {
    const Builder::Scope scope(builder, name_);
    const std::int64_t rows = attention.batch * attention.seq;
    const Tensor gradient = builder.tensor("dqkv", rows * shape_.qkv_columns(), builder.compute());
    const auto op = builder.op<ops::AttentionBackward>(attention);
    const Tensor lengths = shape_.lengths ? builder.input(Input::lengths, attention.batch) : Tensor{};
    const Parts part = parts_of(shape_, builder.compute());
    using Args = ops::AttentionBackward::Args;
    builder.run(op,
                {{&Args::q, qkv_},
                 {&Args::k, qkv_, part.k},
                 {&Args::v, qkv_, part.v},
                 {&Args::out, out_},
                 {&Args::dout, dout},
                 {&Args::log_sum_exp, log_sum_exp_},
                 {&Args::lengths, lengths}},
                {{&Args::dq, gradient}, {&Args::dk, gradient, part.k}, {&Args::dv, gradient, part.v}});
    rotate(builder, gradient, true);
    return gradient;
  }();
  return qkv_projection_.backward(builder, dqkv, into);
}

}  // namespace assay::nn
