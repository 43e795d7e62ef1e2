// Attention by blocks of queries and keys with an online softmax (Milakov & Gimelshein 2018; Dao et al. 2022): what is
// held is one block of scores. Operands are copied into f32 blocks first, keys also transposed, so that the products
// read consecutive memory whatever the strides and types are. Blocks that the mask hides are skipped.
#include "workloads/ops/cpu/kernels/attention_kernels.h"

#include "harness/device/cpu/kernels.h"
#include "harness/device/cpu/vector/vector.h"
#include "workloads/ops/cpu/kernels/math.h"
#include "workloads/ops/cpu/kernels/small_product.h"

namespace assay::ops {
namespace {

using namespace vector;
using Index = std::int64_t;

constexpr Index block = 64;  // queries, and keys: a multiple of the lanes and of tile_rows

Index rounded(Index n, Index unit) { return (n + unit - 1) / unit * unit; }
Index smaller(Index a, Index b) { return a < b ? a : b; }

// Sizes of one head's copies: rows are padded to whole blocks and whole vectors, with zeros.
struct Sizes {
  Index length, rows, width, blocks;
  Sizes(Index n, Index head_dim)
      : length(n), rows(rounded(n, block)), width(rounded(head_dim, lanes)), blocks(rows / block) {}
  Index copy() const { return rows * width; }
};

// to (rows, width) = scale * from (length, head_dim).
template <typename T>
void copy_rows(const T* from, Index stride, Index head_dim, const Sizes& s, float scale, float* to) {
  for (Index r = 0; r < s.rows; ++r, to += s.width) {
    if (r < s.length)
      for_vectors(0, head_dim, [&](Index i, auto count) { store(to + i, load(from + r * stride + i, count) * scale); });
    else
      for (Index i = 0; i < s.width; i += lanes) store(to + i, Float{});
  }
}

// to (blocks, width, block): each block of rows transposed. `rows` is a copy made by copy_rows().
void transpose_blocks(const float* rows, const Sizes& s, float* to) {
  for (Index b = 0; b < s.blocks; ++b)
    for (Index d = 0; d < s.width; ++d)
      for (Index r = 0; r < block; ++r) to[(b * s.width + d) * block + r] = rows[(b * block + r) * s.width + d];
}

template <typename T>
void write_row(const float* from, Index head_dim, float scale, T* to) {
  for_vectors(0, head_dim, [&](Index i, auto count) { store(to + i, load(from + i) * scale, count); });
}
template <typename T>
void write_zeros(Index head_dim, T* to) {
  for_vectors(0, head_dim, [&](Index i, auto count) { store(to + i, Float{}, count); });
}

// Sets lanes from `n` on to `other`, for the vector that begins at element i.
inline Float keep_below(Float x, Index i, Index n, float other) {
  Int index;
  for (int l = 0; l < lanes; ++l) index[l] = l;
  return index < static_cast<std::int32_t>(n - i) ? x : splat(other);
}

// How many keys of the block that begins at `first_key` a query sees; may be less than 1 or more than a block.
Index visible(const AttentionHead& h, Index query, Index first_key) {
  return (h.causal ? smaller(h.length, query + 1) : h.length) - first_key;
}

struct Softmax {
  float most[block];
  float sum[block];
};

// Scores (block, block) become exp(score - the row's largest so far); sums and out (block, width) follow.
void online_softmax(const AttentionHead& h, Index first_query, Index first_key, float* scores, Softmax& state,
                    float* out, Index width) {
  for (Index r = 0; r < block; ++r) {
    float* row = scores + r * block;
    const Index seen = visible(h, first_query + r, first_key);
    Float most = splat(state.most[r]);
    if (seen < block)
      for (Index i = 0; i < block; i += lanes) store(row + i, keep_below(load(row + i), i, seen, -__builtin_inff()));
    for (Index i = 0; i < block; i += lanes) most = maximum(most, load(row + i));
    const float top = largest(most);
    Float sum = {};
    for (Index i = 0; i < block; i += lanes) {
      const Float e = exponential(load(row + i) - top);
      store(row + i, e);
      sum += e;
    }
    if (top != state.most[r]) {
      const float shrink = exponential(splat(state.most[r] - top))[0];
      state.sum[r] *= shrink;
      for (Index i = 0; i < width; i += lanes) store(out + r * width + i, load(out + r * width + i) * shrink);
      state.most[r] = top;
    }
    state.sum[r] += vector::sum(sum);
  }
}

Index forward_scratch(Index seq, Index head_dim) {
  const Sizes s(seq, head_dim);
  return 4 * s.copy() + block * block + block * s.width;
}

template <typename T>
void forward(const AttentionHead& h) {
  const Sizes s(h.length, h.head_dim);
  float* values = h.scratch;               // (rows, width)
  float* keys = values + s.copy();         // (blocks, width, block)
  float* queries = keys + s.copy();        // (rows, width)
  float* scores = queries + 2 * s.copy();  // (block, block)
  float* out = scores + block * block;     // (block, width)
  copy_rows(static_cast<const T*>(h.k), h.k_stride, h.head_dim, s, 1.0f, queries);
  transpose_blocks(queries, s, keys);
  copy_rows(static_cast<const T*>(h.v), h.v_stride, h.head_dim, s, 1.0f, values);
  for (Index g = 0; g < h.group; ++g) {
    copy_rows(static_cast<const T*>(h.q) + g * h.head_dim, h.q_stride, h.head_dim, s, h.scale, queries);
    T* to = static_cast<T*>(h.to_out) + g * h.head_dim;
    float* log_sum_exp = h.log_sum_exp + g * h.seq;
    for (Index qb = h.part; qb < s.blocks; qb += h.parts) {
      Softmax state;
      for (Index r = 0; r < block; ++r) state.most[r] = -__builtin_inff(), state.sum[r] = 0;
      for (Index i = 0; i < block * s.width; i += lanes) store(out + i, Float{});
      const Index last = h.causal ? qb : s.blocks - 1;
      for (Index kb = 0; kb <= last; ++kb) {
        product<false>(block, block, s.width, {queries + qb * block * s.width, s.width, 1}, keys + kb * block * s.width,
                       block, scores, block);
        online_softmax(h, qb * block, kb * block, scores, state, out, s.width);
        product<true>(block, s.width, block, {scores, block, 1}, values + kb * block * s.width, s.width, out, s.width);
      }
      for (Index r = 0; r < block && qb * block + r < h.length; ++r) {
        const Index query = qb * block + r;
        write_row(out + r * s.width, h.head_dim, 1.0f / state.sum[r], to + query * h.out_stride);
        log_sum_exp[query] = state.most[r] + static_cast<float>(__builtin_log(static_cast<double>(state.sum[r])));
      }
    }
    for (Index r = h.length + h.part; r < h.seq; r += h.parts) {
      write_zeros(h.head_dim, to + r * h.out_stride);
      log_sum_exp[r] = 0;
    }
  }
}

Index backward_scratch(Index seq, Index head_dim) {
  const Sizes s(seq, head_dim);
  return 8 * s.copy() + 2 * s.rows + 2 * block * block;
}

template <typename T>
void backward(const AttentionHead& h) {
  const Sizes s(h.length, h.head_dim);
  float* keys = h.scratch;               // (rows, width)
  float* keys_across = keys + s.copy();  // (blocks, width, block)
  float* values_across = keys_across + s.copy();
  float* dkeys = values_across + s.copy();  // (rows, width)
  float* dvalues = dkeys + s.copy();
  float* queries = dvalues + s.copy();  // scaled
  float* douts = queries + s.copy();
  float* dqueries = douts + s.copy();
  float* delta = dqueries + s.copy();    // (rows): the product of a row of out and of its gradient
  float* offset = delta + s.rows;        // (rows): the logarithm of the row's sum; infinity beyond the length
  float* probability = offset + s.rows;  // (block, block)
  float* dscores = probability + block * block;

  copy_rows(static_cast<const T*>(h.v), h.v_stride, h.head_dim, s, 1.0f, keys);
  transpose_blocks(keys, s, values_across);
  copy_rows(static_cast<const T*>(h.k), h.k_stride, h.head_dim, s, 1.0f, keys);
  transpose_blocks(keys, s, keys_across);
  for (Index i = 0; i < 2 * s.copy(); i += lanes) store(dkeys + i, Float{});
  for (Index g = 0; g < h.group; ++g) {
    copy_rows(static_cast<const T*>(h.q) + g * h.head_dim, h.q_stride, h.head_dim, s, h.scale, queries);
    const T* dout = static_cast<const T*>(h.dout) + g * h.head_dim;
    const T* out = static_cast<const T*>(h.out) + g * h.head_dim;
    copy_rows(dout, h.out_stride, h.head_dim, s, 1.0f, douts);
    for (Index i = 0; i < s.copy(); i += lanes) store(dqueries + i, Float{});
    for (Index r = 0; r < s.rows; ++r) {
      Float sum = {};
      if (r < h.length)
        for_vectors(0, h.head_dim, [&](Index i, auto count) {
          sum += load(out + r * h.out_stride + i, count) * load(dout + r * h.out_stride + i, count);
        });
      delta[r] = vector::sum(sum);
      offset[r] = r < h.length ? h.log_sum_exp[g * h.seq + r] : __builtin_inff();
    }
    for (Index kb = 0; kb < s.blocks; ++kb)
      for (Index qb = h.causal ? kb : 0; qb < s.blocks; ++qb) {
        const Index at_key = kb * block * s.width, at_query = qb * block * s.width;
        product<false>(block, block, s.width, {queries + at_query, s.width, 1}, keys_across + at_key, block,
                       probability, block);
        product<false>(block, block, s.width, {douts + at_query, s.width, 1}, values_across + at_key, block, dscores,
                       block);
        for (Index r = 0; r < block; ++r) {
          const Index query = qb * block + r;
          const Index seen = visible(h, query, kb * block);
          const float less = offset[query], row_delta = delta[query];
          for (Index i = 0; i < block; i += lanes) {
            Float p = exponential(load(probability + r * block + i) - less);
            if (seen < block) p = keep_below(p, i, seen, 0.0f);
            store(probability + r * block + i, p);
            store(dscores + r * block + i, p * (load(dscores + r * block + i) - row_delta));
          }
        }
        product<true>(block, s.width, block, {probability, 1, block}, douts + at_query, s.width, dvalues + at_key,
                      s.width);
        product<true>(block, s.width, block, {dscores, 1, block}, queries + at_query, s.width, dkeys + at_key, s.width);
        product<true>(block, s.width, block, {dscores, block, 1}, keys + at_key, s.width, dqueries + at_query, s.width);
      }
    T* dq = static_cast<T*>(h.dq) + g * h.head_dim;
    for (Index r = 0; r < h.seq; ++r)
      r < h.length ? write_row(dqueries + r * s.width, h.head_dim, h.scale, dq + r * h.q_stride)
                   : write_zeros(h.head_dim, dq + r * h.q_stride);
  }
  for (Index r = 0; r < h.seq; ++r) {
    T* dk = static_cast<T*>(h.dk) + r * h.k_stride;
    T* dv = static_cast<T*>(h.dv) + r * h.v_stride;
    r < h.length ? write_row(dkeys + r * s.width, h.head_dim, 1.0f, dk) : write_zeros(h.head_dim, dk);
    r < h.length ? write_row(dvalues + r * s.width, h.head_dim, 1.0f, dv) : write_zeros(h.head_dim, dv);
  }
}

constexpr AttentionKernels attention_kernels{forward<float>, forward<bf16>,   backward<float>,
                                             backward<bf16>, forward_scratch, backward_scratch};

}  // namespace

template <>
const AttentionKernels cpu::KernelsFor<AttentionKernels, cpu::Isa::ASSAY_ISA>::table = ops::attention_kernels;

}  // namespace assay::ops
