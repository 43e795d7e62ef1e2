// Counts what matrix products, convolutions and attention compute and move, by the shapes that a trace has.
#pragma once

#include "harness/core/dtype.h"
#include "harness/machine/hardware.h"
#include "harness/runs/traced.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::kineto {

// The operands of an operator, as record_shapes=True records them.
struct Inputs {
  struct One {
    std::vector<std::int64_t> sizes;  // of a tensor
    std::string type;                 // "float", "c10::BFloat16"
    std::string value;                // of what is no tensor: "[2, 2]", "True"
  };
  static constexpr std::size_t max_count = 12, max_rank = 8, max_value = 200;

  std::array<One, max_count> all;
  std::size_t shapes = 0, types = 0, values = 0;  // how many of `all` have each

  void clear() { shapes = types = values = 0; }
  // Members of an input are read one after another; those beyond max_count are left out.
  void add_shape();
  void add_size(std::int64_t size);
  void add_type(const std::string& type);
  void add_value(const std::string& value);
};

enum class ProductKind { mm, addmm, bmm, baddbmm, convolution, convolution_backward, attention };
// Finds the kind by an operator's name: "aten::mm".
std::optional<ProductKind> product_kind(std::string_view name);

struct Work {
  double flops = 0;  // multiplications and additions; with a causal mask those of the pairs that it leaves
  double bytes = 0;  // of operands and result, each moved once
  DType dtype = DType::f32;
};
// Absent where the shapes are not known, do not fit together, or leave nothing to compute.
std::optional<Work> work_of(ProductKind kind, const Inputs& inputs);

// One call that took so long; its least time is not known yet.
TracedWork traced_work(const Work& work, double seconds);

// Sets the least time of one call: its FLOPs at the peak, or its bytes at the bandwidth, whichever takes longer. Not
// without a sheet, where the kernel's name does not tell whether f32 is computed as tf32, and for algorithms that need
// fewer FLOPs than the formula has (Winograd, FFT).
void limit_by(const HardwareSheet* sheet, std::string_view kernel, TracedWork& work);

}  // namespace assay::kineto
