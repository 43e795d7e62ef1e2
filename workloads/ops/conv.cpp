// Validation of convolutions.
#include "workloads/ops/conv.h"

#include "workloads/ops/descriptors.h"

namespace assay::ops {

std::optional<std::string> problem_of(const ConvDesc& d) {
  if (auto problem =
          problem_of_sizes({{"n", d.n}, {"h", d.h}, {"w", d.w}, {"c", d.c}, {"k", d.k}, {"r", d.r}, {"s", d.s}}))
    return problem;
  if (d.stride < 1) return fmt::format("stride must be at least 1, not {}", d.stride);
  if (d.padding < 0) return fmt::format("padding must be at least 0, not {}", d.padding);
  if (d.groups < 1) return fmt::format("groups must be at least 1, not {}", d.groups);
  if (d.c % d.groups != 0) return fmt::format("{} groups do not divide {} input channels", d.groups, d.c);
  if (d.k % d.groups != 0) return fmt::format("{} groups do not divide {} output channels", d.groups, d.k);
  if (d.r > d.h + 2 * d.padding || d.s > d.w + 2 * d.padding)
    return fmt::format("a window of {} x {} does not fit an image of {} x {} with padding {}", d.r, d.s, d.h, d.w,
                       d.padding);
  if (auto problem = problem_of_types({d.dtype == DType::tf32 ? DType::f32 : d.dtype, d.pack_from, d.gradient}))
    return problem;
  return std::nullopt;
}

}  // namespace assay::ops
