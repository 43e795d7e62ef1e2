// Shapes and types of gemm cases.
#include "suites/gemm/shape.h"

#include "harness/core/error.h"

namespace assay::gemm {

std::optional<Types> types_of(const std::string& dtype, DeviceKind kind) {
  using enum DType;
  const bool gpu = kind == DeviceKind::cuda;
  if (dtype == "f64") return Types{f64, f64, f64};
  if (dtype == "f32") return Types{f32, f32, f32};
  if (dtype == "bf16") return Types{bf16, bf16, bf16};
  if (dtype == "int8") return gpu ? Types{s8, s8, i32} : Types{u8, s8, i32};
  if (!gpu) return std::nullopt;
  if (dtype == "tf32") return Types{tf32, tf32, f32};
  if (dtype == "fp16") return Types{fp16, fp16, fp16};
  if (dtype == "fp8_e4m3") return Types{fp8_e4m3, fp8_e4m3, bf16};
  if (dtype == "fp8_e5m2") return Types{fp8_e5m2, fp8_e4m3, bf16};
  return std::nullopt;
}

bool is_sustained(const Params& params) { return params.choice<Duration>("duration") == Duration::sustained; }

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
          .pack_from = types.b,
          .fast_accumulate = fast_accumulate};
}

Shape shape_of(const Params& params, DeviceKind kind) {
  const std::optional<Types> types = types_of(params.text("dtype"), kind);
  ASSAY_CHECK(types, "dtype {} is not built", params.text("dtype"));
  const std::string& transpose = params.text("transpose");
  return {.m = params.integer("m"),
          .n = params.integer("n"),
          .k = params.integer("k"),
          .types = *types,
          .transpose_a = transpose[0] == 't',
          .transpose_b = transpose[1] == 't',
          .fast_accumulate =
              params.has("accumulation") && params.choice<Accumulation>("accumulation") == Accumulation::fast};
}

}  // namespace assay::gemm
