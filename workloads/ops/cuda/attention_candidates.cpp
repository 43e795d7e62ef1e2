#include "workloads/ops/cuda/attention_candidates.h"

#include "workloads/ops/algorithm_cache.h"

#include <cmath>
#include <optional>
#include <utility>

namespace assay::ops {

namespace {

// A reproducible backward pass stores the gradient of all scores of its sequences in 16 bits; any other one stores dq
// in f32. Sequences beyond this size are processed in slices.
constexpr std::int64_t max_slice_bytes = std::int64_t{1} << 30;
// Keys per tile; the tail of the last tile must be masked by lengths (cuDNN before 9.26 computes NaN from it if the
// log-sum-exp is far below zero: NVIDIA/cudnn-frontend#160, #1072).
constexpr std::int64_t tile = 128;

// The maximum number of sequences at a time, a divisor of the batch, at `bytes` each. Nothing if the front end would
// pass cuDNN unaligned scratch: it follows one f32 sum per row and must be aligned to 16 bytes.
std::optional<std::int64_t> slice_of(const AttentionDesc& d, bool backward, std::int64_t bytes) {
  for (std::int64_t slice = d.batch; slice > 0; --slice) {
    if (d.batch % slice != 0 || (slice > 1 && slice * bytes > max_slice_bytes)) continue;
    if (!backward || slice * d.heads * d.seq % 4 == 0) return slice;
  }
  return std::nullopt;
}

}  // namespace

std::string cudnn_refusal(const AttentionDesc& d) {
  if (d.dtype != DType::bf16 && d.dtype != DType::fp16) return fmt::format("cuDNN: no {}", name_of(d.dtype));
  // Rows are read 16 bytes at a time.
  if (d.head_dim % 8 != 0 || d.q_stride % 8 != 0 || d.k_stride % 8 != 0 || d.v_stride % 8 != 0)
    return fmt::format("cuDNN: heads of {} elements and rows of {}, {} and {} are not all multiples of 8", d.head_dim,
                       d.q_stride, d.k_stride, d.v_stride);
  if (d.seq == 1) return "cuDNN: sequences of one token";
  return {};
}

bool has_masked_tail(const AttentionDesc& d, bool backward) { return backward && !d.lengths && d.seq % tile != 0; }

cudnn::AttentionGraph attention_graph_of(const AttentionDesc& d, bool backward) {
  cudnn::AttentionGraph graph;
  graph.backward = backward;
  graph.batch = d.batch;
  graph.seq = d.seq;
  graph.heads = d.heads;
  graph.kv_heads = d.kv_heads;
  graph.head_dim = d.head_dim;
  graph.q_stride = d.q_stride;
  graph.k_stride = d.k_stride;
  graph.v_stride = d.v_stride;
  graph.causal = d.causal;
  graph.lengths = d.lengths || has_masked_tail(d, backward);
  graph.scale = static_cast<float>(d.scale != 0 ? d.scale : 1 / std::sqrt(static_cast<double>(d.head_dim)));
  graph.dtype = d.dtype;
  return graph;
}

std::vector<AttentionCandidate> attention_candidates(const AttentionDesc& d, bool backward, std::string& why_none,
                                                     const std::string& name) {
  cudnn::AttentionGraph graph = attention_graph_of(d, backward);
  std::vector<AttentionCandidate> candidates;
  const auto add = [&](bool repeats, std::int64_t bytes, std::size_t max_plans) {
    const auto slice = slice_of(d, backward, bytes);
    if (!slice) {
      why_none = fmt::format("cuDNN: {} rows of queries do not fill a multiple of 16 bytes", d.batch * d.heads * d.seq);
      return;
    }
    graph.batch = *slice;
    cudnn::Limits limits;
    limits.workspace_bytes = std::size_t{8} << 30;  // one long sequence may need a lot
    limits.max_plans = max_plans;
    limits.deterministic = repeats;
    if (!name.empty()) {
      const std::string prefix = AttentionCandidate::prefix(*slice, repeats);
      if (!name.starts_with(prefix)) return;
      limits.name = name.substr(prefix.size());
    }
    cudnn::Plans found = cudnn::attention_plans(graph, limits);
    if (why_none.empty()) why_none = found.why_not;
    for (auto& plan : found.plans) candidates.push_back({*slice, repeats, std::move(plan)});
  };
  const std::int64_t keys = (d.seq + tile - 1) / tile * tile;
  if (!backward) {
    add(true, 0, 3);
  } else {
    add(true, d.heads * keys * keys * 2, 2);
    if (d.seq > tile && !by_heuristics())
      add(false, d.heads * keys * d.head_dim * static_cast<std::int64_t>(sizeof(float)), 2);
  }
  return candidates;
}

}  // namespace assay::ops
