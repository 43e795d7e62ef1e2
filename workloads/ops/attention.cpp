// Validation of attention.
#include "workloads/ops/attention.h"

#include "workloads/ops/descriptors.h"

#include <cmath>

namespace assay::ops {

namespace {

std::optional<std::string> problem_of_stride(const char* name, std::int64_t stride, std::int64_t heads,
                                             std::int64_t head_dim) {
  if (stride >= heads * head_dim) return std::nullopt;
  return fmt::format("{}_stride must be at least {} ({} heads of {}), not {}", name, heads * head_dim, heads, head_dim,
                     stride);
}

}  // namespace

std::optional<std::string> problem_of(const AttentionDesc& d) {
  if (auto problem = problem_of_sizes(
          {{"batch", d.batch}, {"seq", d.seq}, {"heads", d.heads}, {"kv_heads", d.kv_heads}, {"head_dim", d.head_dim}}))
    return problem;
  if (d.heads % d.kv_heads != 0)
    return fmt::format("{} key and value heads do not divide {} heads", d.kv_heads, d.heads);
  if (auto problem = problem_of_stride("q", d.q_stride, d.heads, d.head_dim)) return problem;
  if (auto problem = problem_of_stride("k", d.k_stride, d.kv_heads, d.head_dim)) return problem;
  if (auto problem = problem_of_stride("v", d.v_stride, d.kv_heads, d.head_dim)) return problem;
  if (!std::isfinite(d.scale) || d.scale < 0)
    return fmt::format("scale must be 0 (for 1 / sqrt(head_dim)) or above, not {}", d.scale);
  return problem_of_types({storage_type(d.dtype)});
}

}  // namespace assay::ops
