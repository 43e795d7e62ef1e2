// Maximum and average pooling.
#pragma once

#include "workloads/nn/builder.h"

#include <string>

namespace assay::nn {

class Pool {
 public:
  // Sizes and kind come from `desc`, the type from the builder.
  Pool(std::string name, const ops::PoolDesc& desc) : name_(std::move(name)), desc_(desc) {}

  // x (N, H, W, C) to (N, P, Q, C).
  Tensor forward(Builder& builder, Tensor x);
  Tensor backward(Builder& builder, Tensor dy);

 private:
  std::string name_;
  ops::PoolDesc desc_;
  Tensor saved_;
};

// out = a + b (elements), written over a.
Tensor append_add(Builder& builder, Tensor a, Tensor b, std::int64_t elements);
// x of type `from` as the builder's compute type; x itself if that is the same.
Tensor append_cast(Builder& builder, Tensor x, std::int64_t elements, DType from);

}  // namespace assay::nn
