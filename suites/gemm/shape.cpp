// Shapes and types of gemm cases.
#include "suites/gemm/shape.h"

#include "harness/core/error.h"

namespace assay::gemm {

std::optional<Types> types_of(const std::string& dtype) {
  if (dtype == "f64") return Types{DType::f64, DType::f64, DType::f64};
  if (dtype == "f32") return Types{DType::f32, DType::f32, DType::f32};
  if (dtype == "bf16") return Types{DType::bf16, DType::bf16, DType::bf16};
  if (dtype == "int8") return Types{DType::u8, DType::s8, DType::i32};
  return std::nullopt;
}

std::size_t Shape::a_bytes() const {
  return static_cast<std::size_t>(m) * static_cast<std::size_t>(k) * size_of(types.a);
}
std::size_t Shape::b_bytes() const {
  return static_cast<std::size_t>(k) * static_cast<std::size_t>(n) * size_of(types.b);
}
std::size_t Shape::out_bytes() const {
  return static_cast<std::size_t>(m) * static_cast<std::size_t>(n) * size_of(types.out);
}

double Shape::flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }

ops::MatmulDesc Shape::desc(ops::WeightForm form) const {
  return {.m = m,
          .n = n,
          .k = k,
          .a = types.a,
          .b = types.b,
          .out = types.out,
          .transpose_a = transpose_a,
          .transpose_b = transpose_b,
          .form = form,
          .pack_from = types.b};
}

Shape shape_of(const Params& params) {
  const std::optional<Types> types = types_of(params.text("dtype"));
  ASSAY_CHECK(types, "dtype {} is not built", params.text("dtype"));
  const std::string& transpose = params.text("transpose");
  return {.m = params.integer("m"),
          .n = params.integer("n"),
          .k = params.integer("k"),
          .types = *types,
          .transpose_a = transpose[0] == 't',
          .transpose_b = transpose[1] == 't'};
}

}  // namespace assay::gemm
