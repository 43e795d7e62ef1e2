// What a gemm case multiplies: its parameters as numbers.
#pragma once

#include "harness/plan/params.h"
#include "workloads/ops/matmul.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace assay::gemm {

// The element types that a dtype of the family stands for; nothing for one that is not built.
// f64, f32: throughout. bf16: bf16 out, f32 sums. int8: u8 x s8, s32 out.
struct Types {
  DType a;
  DType b;
  DType out;
};
std::optional<Types> types_of(const std::string& dtype);

struct Shape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  Types types{};
  bool transpose_a = false;
  bool transpose_b = false;

  std::size_t a_bytes() const;
  std::size_t b_bytes() const;
  std::size_t out_bytes() const;
  // 2 m n k: a multiply and an add for each term.
  double flops() const;
  ops::MatmulDesc desc(ops::WeightForm form) const;
};

// Of a case whose dtype is built.
Shape shape_of(const Params& params);

}  // namespace assay::gemm
