// Token embedding, with learned positions and token types if the model has them.
#pragma once

#include "workloads/nn/builder.h"

namespace assay::nn {

struct EmbeddingShape {
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;
  std::int64_t positions = 0;  // learned; 0: none
  std::int64_t types = 0;      // 0: none
};

class Embedding {
 public:
  // Parameters embedding.token.weight (vocabulary, width), embedding.position.weight, embedding.type.weight.
  Embedding(const Builder& builder, const EmbeddingShape& shape);

  // Embeds the batch's ids: (B, T, width).
  Tensor forward(Builder& builder);
  void backward(Builder& builder, Tensor dy);
  Parameter table() const { return table_; }

 private:
  // Nothing is added to the rows of the table before they are rounded.
  bool alone() const { return !positions_ && !types_; }
  ops::EmbeddingDesc desc(const Builder& builder) const;

  EmbeddingShape shape_;
  Parameter table_, positions_, types_;
};

}  // namespace assay::nn
