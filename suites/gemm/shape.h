// Shape and types of a gemm case.
#pragma once

#include "harness/device/device.h"
#include "harness/plan/params.h"
#include "workloads/ops/matmul.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace assay::gemm {

enum class Duration { burst, sustained };
constexpr auto words(Duration) { return std::to_array<std::string_view>({"burst", "sustained"}); }
enum class Accumulation { full, fast };
constexpr auto words(Accumulation) { return std::to_array<std::string_view>({"full", "fast"}); }

// The element types that a dtype of the family means on a kind of device; nullopt if it is not supported.
// f64, f32: throughout. bf16, fp16: same output type, f32 sums. tf32: stored as f32. fp8: bf16 output; e5m2 is
// multiplied by e4m3, like a gradient by weights. int8: s32 output, u8 x s8 on a CPU and s8 x s8 on a GPU.
struct Types {
  DType a;
  DType b;
  DType out;
};
std::optional<Types> types_of(const std::string& dtype, DeviceKind kind);

struct Shape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  Types types{};
  bool transpose_a = false;
  bool transpose_b = false;
  bool fast_accumulate = false;  // fp8: sums stay in the tensor core's own format of fewer bits

  std::size_t a_bytes() const;
  std::size_t b_bytes() const;
  std::size_t out_bytes() const;
  // 2 m n k: a multiply and an add per term.
  double flops() const;
  ops::MatmulDesc desc(ops::WeightForm form) const;
};

// The dtype must be supported on this kind of device.
Shape shape_of(const Params& params, DeviceKind kind);
bool is_sustained(const Params& params);

}  // namespace assay::gemm
