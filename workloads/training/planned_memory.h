// Memory that a training case may use beside the memory that its plan counts.
#pragma once

#include <algorithm>
#include <cstdint>

namespace assay::training {

// GPU memory that libraries use outside the plan from the first steps on: code and stacks of kernels, graphs. The bound
// that `planned_memory` is checked with.
inline constexpr std::uint64_t gpu_libraries_bytes = std::uint64_t{1} << 30;
// Memory that NCCL allocates, roughly, on eight GPUs with rings and NVLS. Cases measure it instead, as it depends on
// the number of ranks and their links.
inline constexpr std::uint64_t gpu_communication_bytes = std::uint64_t{1} << 30;

// How far `used` bytes are from the plan, as a share of it: beyond plan and `allowance`, or short of the plan. 0
// between.
inline double share_off_plan(double planned, double used, double allowance) {
  return std::max({0.0, used - planned - allowance, planned - used}) / planned;
}

}  // namespace assay::training
