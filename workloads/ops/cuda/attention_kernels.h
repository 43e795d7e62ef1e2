// Our kernels of attention: the masked softmax of a block of rows, its gradient, and helpers.
#pragma once

#include "harness/core/dtype.h"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace assay::ops {

// Rows of scores of some heads of one sequence: (heads, queries, row_stride); columns [0, keys) contain scores.
struct AttentionRows {
  std::int64_t sequence = 0;     // index in the batch
  std::int64_t total_heads = 0;  // heads of the sequence
  std::int64_t first_head = 0;
  std::int64_t heads = 0;  // heads of this block
  std::int64_t first_query = 0;
  std::int64_t queries = 0;  // queries of this block
  std::int64_t keys = 0;
  std::int64_t row_stride = 0;  // a multiple of 8, at least keys
  std::int64_t seq = 0;
  std::int64_t head_dim = 0;
  double scale = 1;
  const std::int32_t* lengths = nullptr;  // (B), or null: whole sequences
  bool causal = false;
};

// probabilities = softmax(scale * scores) over the keys visible to a query, 0 elsewhere; log_sum_exp (B, H, T) of those
// rows, 0 if a query sees no key. Scores and log_sum_exp are f32 (f64 for f64), probabilities of `dtype`; they may
// alias the scores if both types have the same size.
void attention_softmax(DType dtype, const AttentionRows& rows, const void* scores, void* probabilities,
                       void* log_sum_exp, cudaStream_t stream);

struct AttentionGradientArrays {
  const void* scores = nullptr;          // f32 (f64 for f64)
  const void* dprobabilities = nullptr;  // f32: rows of dout times v
  const void* out = nullptr;             // (B, T, H, D)
  const void* dout = nullptr;            // (B, T, H, D)
  const void* log_sum_exp = nullptr;     // (B, H, T)
  void* probabilities = nullptr;         // may alias scores
  void* dscores = nullptr;               // may alias dprobabilities
};

// p = exp(scale * scores - log_sum_exp) and dscores = scale * p * (dprobabilities - sum(out * dout)), 0 if masked (Dao
// et al. 2022, algorithm 4).
void attention_softmax_gradient(DType dtype, const AttentionRows& rows, const AttentionGradientArrays& arrays,
                                cudaStream_t stream);

// Converts the f32 sums (heads, T, D) to `dtype` (bf16, fp16): head h of token t at to[t * to_stride + h * D].
void attention_store_sums(DType dtype, const float* sums, std::int64_t heads, std::int64_t seq, std::int64_t head_dim,
                          void* to, std::int64_t to_stride, cudaStream_t stream);

// Zeros the rows (B, T) of tokens beyond their sequence's length: `bytes` of each row, rows `row_bytes` apart; both
// multiples of 16.
void attention_zero_masked(void* rows, std::int64_t batch, std::int64_t seq, std::int64_t bytes, std::int64_t row_bytes,
                           const std::int32_t* lengths, cudaStream_t stream);
// The same for log_sum_exp (B, H, T), f32.
void attention_zero_masked_sums(float* log_sum_exp, std::int64_t batch, std::int64_t heads, std::int64_t seq,
                                const std::int32_t* lengths, cudaStream_t stream);

}  // namespace assay::ops
