// The oracle's embedding.
#include "tests/oracle/reference_op.h"

#include <algorithm>

namespace assay::ops::reference {

namespace {

template <typename T>
class ReferenceEmbeddingForward final : public ReferenceOp<EmbeddingForward> {
 public:
  using ReferenceOp::ReferenceOp;

  void run(Stream&, const Args& args) override {
    const Array table(args.table, d_.parameters), positions(args.positions, d_.parameters),
        types(args.types, d_.parameters);
    for (std::int64_t i = 0; i < d_.batch * d_.seq; ++i)
      for (std::int64_t c = 0; c < d_.width; ++c) {
        double value = table[args.ids[i] * d_.width + c];
        if (d_.positions) value += positions[i % d_.seq * d_.width + c];
        if (d_.types > 0) value += types[args.type_ids[i] * d_.width + c];
        static_cast<T*>(args.y)[i * d_.width + c] = narrow<T>(value);
      }
  }
};

template <typename T>
class ReferenceEmbeddingBackward final : public ReferenceOp<EmbeddingBackward> {
 public:
  using ReferenceOp::ReferenceOp;

  // The sums of one row of a table.
  std::size_t workspace_bytes() const override { return static_cast<std::size_t>(d_.width) * sizeof(double); }

  void run(Stream&, const Args& args) override {
    sum_rows(args, args.dtable, d_.vocabulary, d_.accumulate_table,
             [&](std::int64_t i) { return std::int64_t{args.ids[i]}; });
    if (d_.positions)
      sum_rows(args, args.dpositions, d_.seq, d_.accumulate_others, [&](std::int64_t i) { return i % d_.seq; });
    if (d_.types > 0)
      sum_rows(args, args.dtypes, d_.types, d_.accumulate_others,
               [&](std::int64_t i) { return std::int64_t{args.type_ids[i]}; });
  }

 private:
  // Row r of a table's gradient is the sum of dy over the tokens i with row_of(i) == r.
  template <typename RowOf>
  void sum_rows(const Args& args, void* gradient, std::int64_t rows, bool accumulate, RowOf row_of) const {
    const Array out(gradient, d_.gradient);
    const auto* dy = static_cast<const T*>(args.dy);
    auto* sums = static_cast<double*>(args.workspace);
    for (std::int64_t r = 0; r < rows; ++r) {
      std::fill_n(sums, d_.width, 0.0);
      for (std::int64_t i = 0; i < d_.batch * d_.seq; ++i)
        if (row_of(i) == r)
          for (std::int64_t c = 0; c < d_.width; ++c) sums[c] += widen(dy[i * d_.width + c]);
      for (std::int64_t c = 0; c < d_.width; ++c) out.put(r * d_.width + c, sums[c], accumulate);
    }
  }
};

}  // namespace

template <>
Made<EmbeddingForward> make_reference(const EmbeddingDesc& d) {
  return by_type<EmbeddingForward, ReferenceEmbeddingForward>(d.dtype, d);
}

template <>
Made<EmbeddingBackward> make_reference(const EmbeddingDesc& d) {
  return by_type<EmbeddingBackward, ReferenceEmbeddingBackward>(d.dtype, d);
}

}  // namespace assay::ops::reference
