// Validation of the descriptors that have few rules.
#include "workloads/ops/descriptors.h"

#include "workloads/ops/batch_norm.h"
#include "workloads/ops/cross_entropy.h"
#include "workloads/ops/embedding.h"
#include "workloads/ops/norm.h"
#include "workloads/ops/optimizer.h"
#include "workloads/ops/pool.h"
#include "workloads/ops/quantize.h"
#include "workloads/ops/rotary.h"

#include <algorithm>

namespace assay::ops {

std::optional<std::string> problem_of_sizes(std::initializer_list<std::pair<const char*, std::int64_t>> sizes) {
  for (const auto& [name, size] : sizes)
    if (size < 1) return fmt::format("{} must be at least 1, not {}", name, size);
  return std::nullopt;
}

std::optional<std::string> problem_of_types(std::initializer_list<DType> dtypes) {
  for (const DType dtype : dtypes)
    if (dtype != DType::f64 && dtype != DType::f32 && dtype != DType::bf16 && dtype != DType::fp16)
      return fmt::format("{} is not one of f64, f32, bf16, fp16", name_of(dtype));
  return std::nullopt;
}

std::optional<std::string> problem_of(const BatchNormDesc& d) {
  if (auto problem = problem_of_sizes({{"rows", d.rows}, {"channels", d.channels}})) return problem;
  if (d.training && d.rows < 2) return "batch norm in training needs at least 2 values per channel, not 1";
  return problem_of_types({d.dtype});
}

std::optional<std::string> problem_of(const PoolDesc& d) {
  if (auto problem = problem_of_sizes({{"n", d.n},
                                       {"h", d.h},
                                       {"w", d.w},
                                       {"c", d.c},
                                       {"window_h", d.window_h},
                                       {"window_w", d.window_w},
                                       {"stride", d.stride}}))
    return problem;
  if (d.padding < 0 || d.padding >= d.window_h || d.padding >= d.window_w)
    return fmt::format("padding must be at least 0 and below the window of {} x {}, not {}", d.window_h, d.window_w,
                       d.padding);
  if (d.window_h > d.h + 2 * d.padding || d.window_w > d.w + 2 * d.padding)
    return fmt::format("a window of {} x {} does not fit an image of {} x {} with padding {}", d.window_h, d.window_w,
                       d.h, d.w, d.padding);
  return problem_of_types({d.dtype});
}

std::optional<std::string> problem_of(const NormDesc& d) {
  if (auto problem = problem_of_sizes({{"rows", d.rows}, {"columns", d.columns}})) return problem;
  return problem_of_types({d.dtype});
}

std::optional<std::string> problem_of(const QuantizeDesc& d) {
  if (auto problem = problem_of_sizes({{"rows", d.rows}, {"columns", d.columns}})) return problem;
  if (d.from != DType::f32 && d.from != DType::bf16 && d.from != DType::fp16)
    return fmt::format("only f32, bf16 and fp16 are rounded to 8 bits, not {}", name_of(d.from));
  if (d.to != DType::fp8_e4m3 && d.to != DType::fp8_e5m2)
    return fmt::format("{} is not one of fp8_e4m3, fp8_e5m2", name_of(d.to));
  if (!d.plain && !d.transposed) return "rounding to 8 bits must write the tensor plain, transposed or both";
  if (d.accumulate && !d.column_sums) return "only column sums accumulate";
  return std::nullopt;
}

std::optional<std::string> problem_of(const ScaleUpdateDesc& d) {
  return problem_of_sizes({{"tensors", d.tensors}, {"length", d.length}});
}

std::optional<std::string> problem_of(const RotaryDesc& d) {
  if (auto problem =
          problem_of_sizes({{"batch", d.batch}, {"seq", d.seq}, {"heads", d.heads}, {"head_dim", d.head_dim}}))
    return problem;
  if (d.head_dim % 2 != 0) return fmt::format("rotary embedding pairs elements: head_dim {} is odd", d.head_dim);
  if (d.stride < d.heads * d.head_dim)
    return fmt::format("stride must be at least {} ({} heads of {}), not {}", d.heads * d.head_dim, d.heads, d.head_dim,
                       d.stride);
  return problem_of_types({d.dtype});
}

std::optional<std::string> problem_of(const EmbeddingDesc& d) {
  if (auto problem =
          problem_of_sizes({{"batch", d.batch}, {"seq", d.seq}, {"vocabulary", d.vocabulary}, {"width", d.width}}))
    return problem;
  if (d.types < 0) return fmt::format("types must be at least 0, not {}", d.types);
  return problem_of_types({d.dtype, d.parameters, d.gradient});
}

std::optional<std::string> problem_of(const CrossEntropyDesc& d) {
  if (auto problem = problem_of_sizes({{"rows", d.rows}, {"classes", d.classes}})) return problem;
  if (d.stride < d.classes) return fmt::format("stride must be at least {} classes, not {}", d.classes, d.stride);
  if (!(d.smoothing >= 0 && d.smoothing < 1))
    return fmt::format("smoothing must be at least 0 and below 1, not {}", d.smoothing);
  if (d.ignored >= 0 && d.ignored < d.classes) return fmt::format("the ignored target {} is a class", d.ignored);
  return problem_of_types({d.dtype});
}

std::vector<GradientNormDesc::Piece> square_sum_blocks(const GradientNormDesc& desc) {
  constexpr std::int64_t block = 1 << 15;
  std::vector<GradientNormDesc::Piece> pieces = desc.pieces, blocks;
  if (pieces.empty()) pieces.push_back({0, desc.count});
  for (const auto& [begin, count, held] : pieces)
    for (std::int64_t at = 0; at < count; at += block)
      blocks.push_back({begin + at, std::min(block, count - at), held});
  return blocks;
}

std::optional<std::string> problem_of(const OptimizerDesc& d) {
  std::int64_t covered = 0;
  for (const DecaySegment& segment : d.segments) {
    if (segment.begin != covered || segment.end < segment.begin)
      return fmt::format("the decay segment [{}, {}) does not follow element {}", segment.begin, segment.end, covered);
    covered = segment.end;
  }
  if (covered != d.count) return fmt::format("the decay segments cover {} of {} elements", covered, d.count);
  return problem_of_types({d.master, d.gradient, d.parameter});
}

}  // namespace assay::ops
