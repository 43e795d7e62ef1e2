#include "workloads/nn/layers/embedding.h"

namespace assay::nn {

Embedding::Embedding(const Builder& builder, const EmbeddingShape& shape)
    : shape_(shape), table_(builder.parameter("embedding.token.weight")) {
  if (shape.positions > 0) positions_ = builder.parameter("embedding.position.weight");
  if (shape.types > 0) types_ = builder.parameter("embedding.type.weight");
}

ops::EmbeddingDesc Embedding::desc(const Builder& builder) const {
  return {.batch = builder.batch().samples,
          .seq = builder.batch().seq,
          .vocabulary = shape_.vocabulary,
          .width = shape_.width,
          .positions = shape_.positions > 0,
          .types = shape_.types,
          .dtype = builder.compute(),
          .parameters = alone() ? builder.table_type() : builder.master(),
          .gradient = builder.gradient_type()};
}

Tensor Embedding::forward(Builder& builder) {
  const Builder::Scope scope(builder, "embedding");
  const std::int64_t rows = builder.batch().samples * builder.batch().seq;
  const Tensor y = builder.tensor("out", rows * shape_.width, builder.compute());
  const Tensor ids = builder.input(Input::ids, rows);
  const Tensor type_ids = shape_.types > 0 ? builder.input(Input::type_ids, rows) : Tensor{};
  const Tensor table = alone() ? builder.table(table_) : builder.weight(table_);
  using Args = ops::EmbeddingForward::Args;
  builder.run(builder.op<ops::EmbeddingForward>(desc(builder)),
              {{&Args::ids, ids},
               {&Args::type_ids, type_ids},
               {&Args::table, table},
               {&Args::positions, builder.weight(positions_)},
               {&Args::types, builder.weight(types_)}},
              {{&Args::y, y}});
  return y;
}

void Embedding::backward(Builder& builder, Tensor dy) {
  const Builder::Scope scope(builder, "embedding");
  const std::int64_t rows = builder.batch().samples * builder.batch().seq;
  ops::EmbeddingDesc backward = desc(builder);
  backward.accumulate_table = builder.adds_to(table_);
  for (const Parameter other : {positions_, types_})
    if (other) backward.accumulate_others = builder.adds_to(other);
  if (shape_.positions > builder.batch().seq) builder.writes_partly(positions_);
  const Tensor ids = builder.input(Input::ids, rows);
  const Tensor type_ids = shape_.types > 0 ? builder.input(Input::type_ids, rows) : Tensor{};
  using Args = ops::EmbeddingBackward::Args;
  builder.run(builder.op<ops::EmbeddingBackward>(backward),
              {{&Args::dy, dy}, {&Args::ids, ids}, {&Args::type_ids, type_ids}},
              {{&Args::dtable, builder.gradient(table_)},
               {&Args::dpositions, builder.gradient(positions_)},
               {&Args::dtypes, builder.gradient(types_)}});
}

}  // namespace assay::nn
