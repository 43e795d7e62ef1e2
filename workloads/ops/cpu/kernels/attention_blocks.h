// Attention by blocks of queries and keys with an online softmax (Milakov & Gimelshein 2018; Dao et al. 2022): only one
// block of scores is stored. Scores are transposed, (key, query), so that a query's maximum and sum are computed lane
// by lane. Operands are first copied into the order in which the products read them. Blocks hidden by the mask are
// skipped, and most of the hidden part of a diagonal block is not computed.
//
// A Mode says how products multiply (small_product.h); each of its units holds `depth` terms. "Rows" (row,
// width / depth) pack neighbouring elements of a row into a unit, "columns" (rows / depth, width) those of a column.
#pragma once

#include "workloads/ops/cpu/kernels/attention_kernels.h"
#include "workloads/ops/cpu/kernels/math.h"
#include "workloads/ops/cpu/kernels/small_product.h"
#include "workloads/ops/cpu/kernels/transpose.h"

namespace assay::ops {
namespace {

using namespace vector;
using Index = std::int64_t;

constexpr Index block = 64;  // queries, and keys: a multiple of the lanes and of tile_rows

inline Index rounded(Index n, Index unit) { return (n + unit - 1) / unit * unit; }

// Sizes of one head's copies, zero-padded to whole blocks of rows and whole vectors of units.
struct Sizes {
  Index length, rows, width, blocks;
  Sizes(Index n, Index head_dim, Index depth)
      : length(n), rows(rounded(n, block)), width(rounded(head_dim, 16 * depth)), blocks(rows / block) {}
  Index copy() const { return rows * width; }
};

// The part of each tile that a block's product needs. On the diagonal of a causal mask query i sees keys [0, i], so for
// the tile of rows that begins at i:
struct Bounds {
  bool diagonal;
  Index depth, terms;
  // If rows are keys and columns queries, only queries from i on.
  Limits queries_from(Index i) const { return {0, terms, diagonal ? i / lanes * lanes : 0}; }
  // If rows are queries and terms keys, only keys up to the tile's last row.
  Limits keys_to(Index i) const { return {0, diagonal ? (i + tile_rows) / depth : terms, 0}; }
  // If rows are keys and terms queries, only queries from i on.
  Limits terms_from(Index i) const { return {diagonal ? i / depth : 0, terms, 0}; }
};

// For the queries from `first` on in a diagonal block: lanes that do not see the key `key` become `other`.
inline Float keep_seen(Float x, Index first, Index key, float other) {
  Int index;
  for (int l = 0; l < lanes; ++l) index[l] = l;
  return index >= static_cast<std::int32_t>(key - first) ? x : splat(other);
}

constexpr Index prefetch_rows = 16;

// Copies rows [begin, begin + block) of from (length, head_dim) as Mode's rows.
template <typename Mode, typename T>
void copy_block(const T* from, Index stride, Index head_dim, const Sizes& s, Index begin, typename Mode::Unit* to) {
  const Index unit_row = s.width / Mode::depth;
  for (Index r = begin; r < begin + block; ++r, to += unit_row) {
    for (Index i = 0; i < unit_row; i += lanes) {
      const Float zero = {};
      __builtin_memcpy(to + i, &zero, sizeof zero);
    }
    // Rows are in different pages, so the hardware does not prefetch them.
    if (r + prefetch_rows < s.length)
      for (Index i = 0; i < head_dim; i += static_cast<Index>(64 / sizeof(T)))
        __builtin_prefetch(from + (r + prefetch_rows) * stride + i);
    if (r < s.length) Mode::copy_row(from + r * stride, head_dim, to);
  }
}

template <typename Mode, typename T>
void copy_rows(const T* from, Index stride, Index head_dim, const Sizes& s, typename Mode::Unit* to) {
  for (Index b = 0; b < s.blocks; ++b)
    copy_block<Mode>(from, stride, head_dim, s, b * block, to + b * block * s.width / Mode::depth);
}

template <typename T>
void write_row(const float* from, Index head_dim, float scale, T* to) {
  for_vectors(0, head_dim, [&](Index i, auto count) { store(to + i, load(from + i) * scale, count); });
}
template <typename T>
void write_zeros(Index head_dim, T* to) {
  for_vectors(0, head_dim, [&](Index i, auto count) { store(to + i, Float{}, count); });
}

// Allocates whole cache lines from a head's scratch memory; with a null pointer it only counts.
class Scratch {
 public:
  explicit Scratch(float* data) : data_(data) {}
  template <typename Unit>
  Unit* allocate(Index units) {
    Unit* allocated = data_ ? reinterpret_cast<Unit*>(data_ + used_) : nullptr;
    used_ += rounded(units, 16);
    return allocated;
  }
  Index used() const { return used_; }

 private:
  float* data_;
  Index used_ = 0;
};

// The keys of a block seen by one vector of queries: every lane sees [0, whole), some lanes [whole, part), none the
// rest.
struct Seen {
  Index whole, part;
};
inline Seen seen_by(Index first_query, bool diagonal, Index keys) {
  if (!diagonal) return {keys, keys};
  return {first_query + 1, first_query + lanes < block ? first_query + lanes : block};
}

struct Softmax {
  alignas(64) float max[block];
  alignas(64) float sum[block];
  alignas(64) float shrink[block];
};

// Replaces scores (key, query) by exp(scale * score - the query's running maximum) and updates the state. Only the
// first `keys` keys are valid.
template <typename Mode>
void online_softmax(float* scores, typename Mode::Unit* weights, Softmax& state, float scale, bool diagonal,
                    Index keys) {
  for (Index q = 0; q < block; q += lanes) {
    const Seen seen = seen_by(q, diagonal, keys);
    const auto score = [&](Index key) {
      const Float x = load(scores + key * block + q) * scale;
      return key < seen.whole ? x : keep_seen(x, q, key, -__builtin_inff());
    };
    const Float before = load(state.max + q);
    Float max[2] = {before, before};
    Index key = 0;
    for (; key + 2 <= seen.whole; key += 2) {
      max[0] = maximum(max[0], score(key));
      max[1] = maximum(max[1], score(key + 1));
    }
    for (; key < seen.part; ++key) max[0] = maximum(max[0], score(key));
    const Float top = maximum(max[0], max[1]);
    const Float shrink = exponential(before - top);
    Float sum = {};
    const auto weight = [&](Index k) {
      if (k >= seen.part) return Float{};
      const Float e = exponential(score(k) - top);
      sum += e;
      return e;
    };
    for (Index k = 0; k < block; k += Mode::depth) Mode::put_column(weights, scores, k, q, weight);
    store(state.sum + q, load(state.sum + q) * shrink + sum);
    store(state.max + q, top);
    store(state.shrink + q, shrink);
  }
}

template <typename Mode>
struct ForwardScratch {
  typename Mode::Unit *keys, *values, *queries, *across, *weights;
  float *scores, *out;
  Index floats;
  ForwardScratch(float* data, const Sizes& s) {
    Scratch scratch(data);
    keys = scratch.allocate<typename Mode::Unit>(s.copy() / Mode::depth);            // rows
    values = scratch.allocate<typename Mode::Unit>(s.copy() / Mode::depth);          // columns
    queries = scratch.allocate<typename Mode::Unit>(block * s.width / Mode::depth);  // rows of one block
    across = scratch.allocate<typename Mode::Unit>(block * s.width / Mode::depth);   // the same transposed
    scores = scratch.allocate<float>(block * block);
    weights = Mode::depth == 1 ? reinterpret_cast<typename Mode::Unit*>(scores)
                               : scratch.allocate<typename Mode::Unit>(block * block / Mode::depth);
    out = scratch.allocate<float>(block * s.width);
    floats = scratch.used();
  }
};

template <typename Mode, typename T>
void attention_forward(const AttentionHead& h) {
  const Sizes s(h.length, h.head_dim, Mode::depth);
  const ForwardScratch<Mode> p(h.scratch, s);
  const Index unit_row = s.width / Mode::depth;
  for (Index b = 0; b < s.blocks; ++b) {
    copy_block<Mode>(static_cast<const T*>(h.v), h.v_stride, h.head_dim, s, b * block, p.queries);
    Mode::columns(p.queries, s.width, p.values + b * block * unit_row);
  }
  copy_rows<Mode>(static_cast<const T*>(h.k), h.k_stride, h.head_dim, s, p.keys);
  for (Index g = 0; g < h.group; ++g) {
    const T* q = static_cast<const T*>(h.q) + g * h.head_dim;
    T* to = static_cast<T*>(h.to_out) + g * h.head_dim;
    float* log_sum_exp = h.log_sum_exp + g * h.seq;
    for (Index qb = h.part; qb < s.blocks; qb += h.parts) {
      copy_block<Mode>(q, h.q_stride, h.head_dim, s, qb * block, p.queries);
      transpose(p.queries, unit_row, block, unit_row, p.across, block);
      Softmax state;
      for (Index r = 0; r < block; ++r) state.max[r] = -__builtin_inff(), state.sum[r] = 0;
      const Index last = h.causal ? qb : s.blocks - 1;
      for (Index kb = 0; kb <= last; ++kb) {
        const bool diagonal = h.causal && kb == qb;
        const Bounds over_width{diagonal, Mode::depth, unit_row};
        const Bounds over_keys{diagonal, Mode::depth, block / Mode::depth};
        product<Mode, false>(block, block, {p.keys + kb * block * unit_row, unit_row, 1}, p.across, block, p.scores,
                             block, [&](Index i) { return over_width.queries_from(i); });
        const Index keys = s.length - kb * block < block ? s.length - kb * block : block;
        online_softmax<Mode>(p.scores, p.weights, state, h.scale, diagonal, keys);
        const Left<typename Mode::Unit> weights{p.weights, 1, block};
        const typename Mode::Unit* values = p.values + kb * block * unit_row;
        if (kb == 0) {
          product<Mode, false>(block, s.width, weights, values, s.width, p.out, s.width,
                               [&](Index i) { return over_keys.keys_to(i); });
          continue;
        }
        for (Index r = 0; r < block; ++r)
          if (state.shrink[r] != 1.0f)
            for (Index i = r * s.width; i < (r + 1) * s.width; i += lanes)
              store(p.out + i, load(p.out + i) * state.shrink[r]);
        product<Mode, true>(block, s.width, weights, values, s.width, p.out, s.width,
                            [&](Index i) { return over_keys.keys_to(i); });
      }
      for (Index r = 0; r < block && qb * block + r < h.length; ++r) {
        const Index query = qb * block + r;
        write_row(p.out + r * s.width, h.head_dim, 1.0f / state.sum[r], to + query * h.out_stride);
        log_sum_exp[query] = state.max[r] + static_cast<float>(__builtin_log(static_cast<double>(state.sum[r])));
      }
    }
    for (Index r = h.length + h.part; r < h.seq; r += h.parts) {
      write_zeros(h.head_dim, to + r * h.out_stride);
      log_sum_exp[r] = 0;
    }
  }
}

template <typename Mode>
struct BackwardScratch {
  using Unit = typename Mode::Unit;
  Unit *keys, *key_columns, *values;                                   // the whole sequence's
  Unit *queries_across, *query_columns, *douts_across, *dout_columns;  // across: transposed block by block
  Unit *rows, *weights, *dscore_rows, *dscores;                        // one block's
  float *dkeys, *dvalues, *dqueries, *delta, *offset, *score_block, *dscore_block;
  Index floats;
  BackwardScratch(float* data, const Sizes& s) {
    Scratch scratch(data);
    const Index units = s.copy() / Mode::depth;
    constexpr bool same = Mode::depth == 1;  // a unit is an element, so rows and columns are the same
    keys = scratch.allocate<Unit>(units);
    key_columns = same ? keys : scratch.allocate<Unit>(units);
    values = scratch.allocate<Unit>(units);
    queries_across = scratch.allocate<Unit>(units);
    query_columns = scratch.allocate<Unit>(units);
    douts_across = scratch.allocate<Unit>(units);
    dout_columns = scratch.allocate<Unit>(units);
    dkeys = scratch.allocate<float>(s.copy());
    dvalues = scratch.allocate<float>(s.copy());
    dqueries = scratch.allocate<float>(s.copy());
    delta = scratch.allocate<float>(s.rows);   // the dot product of a row of out and its gradient
    offset = scratch.allocate<float>(s.rows);  // the row's log-sum-exp; infinity beyond the length
    score_block = scratch.allocate<float>(block * block);
    dscore_block = scratch.allocate<float>(block * block);
    rows = scratch.allocate<Unit>(block * s.width / Mode::depth);
    weights = same ? reinterpret_cast<Unit*>(score_block) : scratch.allocate<Unit>(block * block / Mode::depth);
    dscore_rows = same ? reinterpret_cast<Unit*>(dscore_block) : scratch.allocate<Unit>(block * block / Mode::depth);
    dscores = same ? dscore_rows : scratch.allocate<Unit>(block * block / Mode::depth);
    floats = scratch.used();
  }
};

// Computes the softmax weights and the gradients of the scores (without the scale) from the scores and the products of
// dout and values, both (key, query).
template <typename Mode>
void softmax_gradient(const BackwardScratch<Mode>& p, Index first_query, float scale, bool diagonal, Index keys) {
  for (Index q = 0; q < block; q += lanes) {
    const Seen seen = seen_by(q, diagonal, keys);
    const Float offset = load(p.offset + first_query + q), delta = load(p.delta + first_query + q);
    const auto weight = [&](Index key) {
      if (key >= seen.part) return Float{};
      const Float e = exponential(load(p.score_block + key * block + q) * scale - offset);
      return key < seen.whole ? e : keep_seen(e, q, key, 0.0f);
    };
    const auto gradient = [&](Index key, Float w) {
      if (key >= seen.part) return Float{};
      const Float g = w * (load(p.dscore_block + key * block + q) - delta);
      return key < seen.whole ? g : keep_seen(g, q, key, 0.0f);
    };
    for (Index key = 0; key < block; key += Mode::depth) Mode::put_gradients(p, key, q, weight, gradient);
  }
}

template <typename Mode, typename T>
void attention_backward(const AttentionHead& h) {
  using Unit = typename Mode::Unit;
  const Sizes s(h.length, h.head_dim, Mode::depth);
  const BackwardScratch<Mode> p(h.scratch, s);
  const Index unit_row = s.width / Mode::depth, unit_block = block * unit_row;
  copy_rows<Mode>(static_cast<const T*>(h.k), h.k_stride, h.head_dim, s, p.keys);
  copy_rows<Mode>(static_cast<const T*>(h.v), h.v_stride, h.head_dim, s, p.values);
  if constexpr (Mode::depth > 1)
    for (Index b = 0; b < s.blocks; ++b)
      Mode::columns(p.keys + b * unit_block, s.width, p.key_columns + b * unit_block);
  for (Index i = 0; i < s.copy(); i += lanes) store(p.dkeys + i, Float{}), store(p.dvalues + i, Float{});
  for (Index g = 0; g < h.group; ++g) {
    const T* dout = static_cast<const T*>(h.dout) + g * h.head_dim;
    const T* out = static_cast<const T*>(h.out) + g * h.head_dim;
    for (Index b = 0; b < s.blocks; ++b) {
      const auto copy = [&](const T* from, Index stride, Unit* across, Unit* columns) {
        Unit* rows = Mode::depth == 1 ? columns + b * unit_block : p.rows;
        copy_block<Mode>(from, stride, h.head_dim, s, b * block, rows);
        transpose(rows, unit_row, block, unit_row, across + b * unit_block, block);
        if constexpr (Mode::depth > 1) Mode::columns(rows, s.width, columns + b * unit_block);
      };
      copy(static_cast<const T*>(h.q) + g * h.head_dim, h.q_stride, p.queries_across, p.query_columns);
      copy(dout, h.out_stride, p.douts_across, p.dout_columns);
    }
    for (Index i = 0; i < s.copy(); i += lanes) store(p.dqueries + i, Float{});
    for (Index r = 0; r < s.rows; ++r) {
      Float sum = {};
      if (r < h.length)
        for_vectors(0, h.head_dim, [&](Index i, auto count) {
          sum += load(out + r * h.out_stride + i, count) * load(dout + r * h.out_stride + i, count);
        });
      p.delta[r] = vector::sum(sum);
      p.offset[r] = r < h.length ? h.log_sum_exp[g * h.seq + r] : __builtin_inff();
    }
    for (Index kb = 0; kb < s.blocks; ++kb)
      for (Index qb = h.causal ? kb : 0; qb < s.blocks; ++qb) {
        const bool diagonal = h.causal && kb == qb;
        const Bounds over_width{diagonal, Mode::depth, unit_row};
        const Bounds over_block{diagonal, Mode::depth, block / Mode::depth};
        const auto queries_from = [&](Index i) { return over_width.queries_from(i); };
        const auto terms_from = [&](Index i) { return over_block.terms_from(i); };
        const Index k = kb * unit_block, q = qb * unit_block, dk = kb * block * s.width, dq = qb * block * s.width;
        product<Mode, false>(block, block, {p.keys + k, unit_row, 1}, p.queries_across + q, block, p.score_block, block,
                             queries_from);
        product<Mode, false>(block, block, {p.values + k, unit_row, 1}, p.douts_across + q, block, p.dscore_block,
                             block, queries_from);
        const Index keys = s.length - kb * block < block ? s.length - kb * block : block;
        softmax_gradient<Mode>(p, qb * block, h.scale, diagonal, keys);
        const Index row = block / Mode::depth;
        product<Mode, true>(block, s.width, {p.weights, row, 1}, p.dout_columns + q, s.width, p.dvalues + dk, s.width,
                            terms_from);
        product<Mode, true>(block, s.width, {p.dscore_rows, row, 1}, p.query_columns + q, s.width, p.dkeys + dk,
                            s.width, terms_from);
        product<Mode, true>(block, s.width, {p.dscores, 1, block}, p.key_columns + k, s.width, p.dqueries + dq, s.width,
                            [&](Index i) { return over_block.keys_to(i); });
      }
    T* dq = static_cast<T*>(h.dq) + g * h.head_dim;
    for (Index r = 0; r < h.seq; ++r)
      r < h.length ? write_row(p.dqueries + r * s.width, h.head_dim, h.scale, dq + r * h.q_stride)
                   : write_zeros(h.head_dim, dq + r * h.q_stride);
  }
  for (Index r = 0; r < h.seq; ++r) {
    T* dk = static_cast<T*>(h.dk) + r * h.k_stride;
    T* dv = static_cast<T*>(h.dv) + r * h.v_stride;
    r < h.length ? write_row(p.dkeys + r * s.width, h.head_dim, h.scale, dk) : write_zeros(h.head_dim, dk);
    r < h.length ? write_row(p.dvalues + r * s.width, h.head_dim, 1.0f, dv) : write_zeros(h.head_dim, dv);
  }
}

template <typename Mode>
Index forward_scratch(Index seq, Index head_dim) {
  return ForwardScratch<Mode>(nullptr, Sizes(seq, head_dim, Mode::depth)).floats;
}
template <typename Mode>
Index backward_scratch(Index seq, Index head_dim) {
  return BackwardScratch<Mode>(nullptr, Sizes(seq, head_dim, Mode::depth)).floats;
}

}  // namespace
}  // namespace assay::ops
