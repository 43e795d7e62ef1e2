// Embedding: threads share the tokens. Backward sorts tokens by id, so that one thread sums each row of a table, in
// token order.
#include "workloads/ops/cpu/cpu_ops.h"
#include "workloads/ops/cpu/kernels/embedding_kernels.h"
#include "workloads/ops/cpu/parallel.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace assay::ops {

namespace {

constexpr std::int64_t embedding_min_elements = 8192;  // per thread

class CpuEmbeddingForward final : public VectorOp<EmbeddingForward> {
 public:
  CpuEmbeddingForward(const EmbeddingDesc& desc)
      : d_(desc),
        tokens_(desc.batch * desc.seq),
        parts_(parts_for(tokens_ * desc.width, embedding_min_elements)),
        kernel_(cpu::kernels<EmbeddingKernels>().forward[desc.parameters == DType::bf16][desc.dtype == DType::bf16]) {}

  void run(Stream&, const Args& args) override {
    const EmbeddingRows rows{.ids = args.ids,
                             .type_ids = args.type_ids,
                             .table = args.table,
                             .positions = d_.positions ? args.positions : nullptr,
                             .types = d_.types > 0 ? args.types : nullptr,
                             .y = args.y,
                             .seq = d_.seq,
                             .width = d_.width};
    for_ranges(tokens_, 1, parts_, [&](std::int64_t begin, std::int64_t end) { kernel_(rows, begin, end); });
  }

 private:
  EmbeddingDesc d_;
  std::int64_t tokens_;
  int parts_;
  EmbeddingKernels::Forward kernel_;
};

// Sorts token indices by id: a stable radix sort, lowest digit first.
class TokenSorter {
 public:
  static constexpr int digit_bits = 11;
  static std::size_t bytes(std::int64_t tokens) {
    return sizeof(std::int32_t) * (2 * static_cast<std::size_t>(tokens) + (std::size_t{1} << digit_bits));
  }

  TokenSorter(std::int64_t tokens, void* workspace)
      : tokens_(tokens),
        order_(static_cast<std::int32_t*>(workspace)),
        other_(order_ + tokens),
        starts_(other_ + tokens) {}

  const std::int32_t* sort(const std::int32_t* ids, std::int64_t vocabulary) {
    for (std::int64_t i = 0; i < tokens_; ++i) order_[i] = static_cast<std::int32_t>(i);
    const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(vocabulary - 1)));
    for (int shift = 0; shift < bits; shift += digit_bits) {
      const auto digit = [&](std::int32_t token) { return (ids[token] >> shift) & ((1 << digit_bits) - 1); };
      std::fill_n(starts_, 1 << digit_bits, 0);
      for (std::int64_t i = 0; i < tokens_; ++i) ++starts_[digit(order_[i])];
      std::int32_t next = 0;
      for (int d = 0; d < 1 << digit_bits; ++d) next += std::exchange(starts_[d], next);
      for (std::int64_t i = 0; i < tokens_; ++i) other_[starts_[digit(order_[i])]++] = order_[i];
      std::swap(order_, other_);
    }
    return order_;
  }

 private:
  std::int64_t tokens_;
  std::int32_t* order_;
  std::int32_t* other_;
  std::int32_t* starts_;
};

class CpuEmbeddingBackward final : public VectorOp<EmbeddingBackward> {
 public:
  CpuEmbeddingBackward(const EmbeddingDesc& desc)
      : d_(desc),
        tokens_(desc.batch * desc.seq),
        parts_(parts_for(tokens_ * desc.width, embedding_min_elements)),
        column_parts_(static_cast<int>(std::clamp<std::int64_t>(desc.width / column_granule, 1, parts_))),
        row_parts_(parts_ / column_parts_),
        kernel_(cpu::kernels<EmbeddingKernels>().sum_rows[desc.dtype == DType::bf16][desc.gradient == DType::bf16]) {}

  std::size_t workspace_bytes() const override { return TokenSorter::bytes(tokens_); }

  void run(Stream&, const Args& args) override {
    if (!d_.accumulate_table) clear(args.dtable, d_.vocabulary);
    if (d_.types > 0 && !d_.accumulate_others) clear(args.dtypes, d_.types);
    TokenSorter sorter(tokens_, args.workspace);
    add_by_id(args.dy, args.ids, sorter.sort(args.ids, d_.vocabulary), args.dtable);
    if (d_.types > 0) add_by_id(args.dy, args.type_ids, sorter.sort(args.type_ids, d_.types), args.dtypes);
    if (d_.positions) add_by_position(args.dy, args.dpositions);
  }

 private:
  static constexpr std::int64_t column_granule = 64;

  std::size_t row_bytes() const { return static_cast<std::size_t>(d_.width) * size_of(d_.gradient); }
  void* row(void* table, std::int64_t index) const {
    return static_cast<std::byte*>(table) + static_cast<std::size_t>(index) * row_bytes();
  }

  void clear(void* table, std::int64_t rows) const {
    const int parts = parts_for(rows * d_.width, embedding_min_elements);
    for_ranges(rows, 1, parts, [&](std::int64_t begin, std::int64_t end) {
      std::memset(row(table, begin), 0, static_cast<std::size_t>(end - begin) * row_bytes());
    });
  }

  // Calls work(part of the rows, part of the columns): splits columns first, then rows if threads are left.
  template <typename Work>
  void split(std::int64_t rows, const Work& work) const {
    for_parts(column_parts_ * row_parts_, [&](int index) {
      work(part_of(rows, 1, index / column_parts_, row_parts_),
           part_of(d_.width, column_granule, index % column_parts_, column_parts_));
    });
  }

  void prefetch(const void* matrix, std::size_t element, std::int64_t row, const Part& columns) const {
    const auto* first =
        static_cast<const std::byte*>(matrix) + static_cast<std::size_t>(row * d_.width + columns.begin) * element;
    const std::size_t bytes = static_cast<std::size_t>(columns.end - columns.begin) * element;
    for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(first + at, 1, 2);
  }

  // Adds to the table's rows, which the caller has cleared unless it accumulates.
  void add_by_id(const void* dy, const std::int32_t* ids, const std::int32_t* order, void* table) const {
    split(tokens_, [&](const Part& rows, const Part& columns) {
      const auto same = [&](std::int64_t i) { return ids[order[i]] == ids[order[i - 1]]; };
      std::int64_t begin = rows.begin;  // an id belongs to the part that contains its first token
      while (begin > 0 && begin < rows.end && same(begin)) ++begin;
      while (begin < rows.end) {
        std::int64_t end = begin + 1;
        while (end < tokens_ && same(end)) ++end;
        if (end < rows.end) {  // in an order that the hardware cannot predict
          prefetch(dy, size_of(d_.dtype), order[end], columns);
          prefetch(table, size_of(d_.gradient), ids[order[end]], columns);
        }
        const RowList list{.order = order + begin, .count = end - begin};
        kernel_(dy, list, d_.width, row(table, ids[order[begin]]), true, columns.begin, columns.end);
        begin = end;
      }
    });
  }

  void add_by_position(const void* dy, void* table) const {
    split(d_.seq, [&](const Part& rows, const Part& columns) {
      for (std::int64_t t = rows.begin; t < rows.end; ++t) {
        const RowList list{.first = t, .stride = d_.seq, .count = d_.batch};
        kernel_(dy, list, d_.width, row(table, t), d_.accumulate_others, columns.begin, columns.end);
      }
    });
  }

  EmbeddingDesc d_;
  std::int64_t tokens_;
  int parts_;
  int column_parts_;
  int row_parts_;
  EmbeddingKernels::SumRows kernel_;
};

std::string problem(const EmbeddingDesc& d) {
  if (d.batch * d.seq > std::numeric_limits<std::int32_t>::max()) return "more tokens than 32 bits can count";
  return type_problem("embedding", {d.dtype, d.parameters, d.gradient});
}

}  // namespace

template <>
Made<EmbeddingForward> make_cpu(const EmbeddingDesc& desc) {
  return make_unless<EmbeddingForward, CpuEmbeddingForward>(problem(desc), desc);
}

template <>
Made<EmbeddingBackward> make_cpu(const EmbeddingDesc& desc) {
  return make_unless<EmbeddingBackward, CpuEmbeddingBackward>(problem(desc), desc);
}

}  // namespace assay::ops
