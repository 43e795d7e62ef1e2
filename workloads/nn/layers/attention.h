// Self-attention: one fused projection to queries, keys and values, rotation, attention, output projection.
#pragma once

#include "workloads/nn/layers/linear.h"

#include <functional>
#include <string>

namespace assay::nn {

struct AttentionShape {
  std::int64_t width = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool bias = true;
  bool qkv_bias = false;  // where `bias` is false: of queries, keys and values all the same
  bool causal = true;
  bool lengths = false;  // keys beyond a sequence's length are masked
  // Rotation of a pair of each head, in radians per position; empty: no rotation.
  std::function<double(std::int64_t pair)> frequency = {};

  std::int64_t qkv_columns() const { return (heads + 2 * kv_heads) * head_dim; }
};

class Attention {
 public:
  // Parameters NAME.qkv.* ((heads + 2 kv_heads) * head_dim, width), queries first, and NAME.out.* under the scope.
  Attention(Builder& builder, std::string name, const AttentionShape& shape);

  // x (B, T, width) to (B, T, width).
  Tensor forward(Builder& builder, Tensor x);
  // The gradient of x, added to into.dx if into.add.
  // Before backward, with the input again.
  void refresh(Builder& builder, Tensor x) { qkv_projection_.refresh(builder, x); }
  Tensor backward(Builder& builder, Tensor dy, const Linear::Into& into);

 private:
  Tensor mix(Builder& builder, Tensor x);
  void rotate(Builder& builder, Tensor qkv, bool inverse) const;
  ops::AttentionDesc desc(const Builder& builder) const;

  std::string name_;
  AttentionShape shape_;
  Linear qkv_projection_, out_projection_;
  Tensor qkv_, out_, log_sum_exp_;
};

}  // namespace assay::nn
