// Handles of the arrays that a program works on, and their addresses once planned.
#pragma once

#include "harness/core/dtype.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::nn {

// A handle into its program's table; converts to false if null.
struct Tensor {
  std::int32_t id = -1;
  explicit operator bool() const { return id >= 0; }
  bool operator==(const Tensor&) const = default;
};

// Flat pieces of memory; a tensor's offset is relative to its region.
enum class Region : std::uint8_t {
  arena,      // alive from first to last use within a program; placed by the planner
  weights,    // masters, all parameters
  copies,     // masters rounded to the type that layers read, in the same order
  gradients,  // all parameters, in the same order
  running,    // running statistics of batch norms
  packed,     // packed weights that are kept for a whole optimizer step
  constants,  // tables computed once (rotary angles)
  inputs,     // for one micro-batch
  state,      // StepState and LossSums
  // One float per tensor that is rounded to 8 bits: the largest magnitude in this step so far, the factor applied
  // before rounding, and its inverse.
  amax,
  scales,
  inverse_scales,
};
inline constexpr std::size_t regions = 12;

// The purpose of a tensor of the arena, for the memory plan.
enum class Purpose : std::uint8_t { activation, workspace, packed };

struct TensorInfo {
  std::string name;
  std::size_t bytes = 0;
  DType dtype = DType::f32;
  bool opaque = false;  // an op's private data (workspace, packed weights), not numbers to inspect
  // Rows of `row` elements, `stride` apart, with padding that is never written; 0: dense.
  std::int64_t row = 0;
  std::int64_t stride = 0;
  Region region = Region::arena;
  Purpose purpose = Purpose::activation;
  std::size_t parameter = 0;  // in the regions weights, copies and gradients
  std::size_t offset = 0;     // within the region, or what is bound to the slot
  // In these regions if ranks divide the array: it is in the arena only while a Window lasts.
  std::int32_t slot = -1;
};

// The addresses of tensors while a program runs.
class Places {
 public:
  explicit Places(const std::vector<TensorInfo>& tensors) : tensors_(&tensors) {}

  void set(Region region, void* base) { bases_[static_cast<std::size_t>(region)] = static_cast<std::byte*>(base); }
  void bind(std::int32_t slot, std::byte* base) {
    const auto index = static_cast<std::size_t>(slot);
    if (index >= slots_.size()) slots_.resize(index + 1);
    slots_[index] = base;
  }
  // Null for a null handle.
  void* at(Tensor tensor) const {
    if (!tensor) return nullptr;
    const TensorInfo& info = (*tensors_)[static_cast<std::size_t>(tensor.id)];
    if (info.slot >= 0) return slots_[static_cast<std::size_t>(info.slot)] + info.offset;
    return bases_[static_cast<std::size_t>(info.region)] + info.offset;
  }

 private:
  const std::vector<TensorInfo>* tensors_;
  std::byte* bases_[regions] = {};
  std::vector<std::byte*> slots_;
};

}  // namespace assay::nn
