// Validation of matrix products.
#include "workloads/ops/matmul.h"

#include <fmt/format.h>

#include <tuple>

namespace assay::ops {

std::string_view name_of(WeightForm form) {
  switch (form) {
    case WeightForm::plain: return "plain";
    case WeightForm::packed: return "packed";
    case WeightForm::inner_product: return "inner_product";
    case WeightForm::tiles: return "tiles";
  }
  return "?";
}

namespace {

bool is_fp8(DType dtype) { return dtype == DType::fp8_e4m3 || dtype == DType::fp8_e5m2; }

bool has_types(DType a, DType b, DType out) {
  switch (a) {
    case DType::f64:
    case DType::f32: return b == a && out == a;
    case DType::tf32: return b == a && (out == a || out == DType::f32);
    case DType::bf16:
    case DType::fp16: return b == a && (out == a || out == DType::f32);
    case DType::fp8_e4m3:
    case DType::fp8_e5m2:
      return is_fp8(b) && (a == DType::fp8_e4m3 || b == DType::fp8_e4m3) &&
             (out == DType::f32 || out == DType::bf16 || out == DType::fp16);
    case DType::u8:
    case DType::s8: return b == DType::s8 && out == DType::i32;
    default: return false;
  }
}

}  // namespace

std::optional<std::string> problem_of(const MatmulDesc& d) {
  if (d.m < 1 || d.n < 1 || d.k < 1) return fmt::format("sizes must be at least 1, not {} x {} x {}", d.m, d.n, d.k);
  if (!has_types(d.a, d.b, d.out))
    return fmt::format("no product of {} x {} into {}", name_of(d.a), name_of(d.b), name_of(d.out));
  const bool extras = d.bias || d.accumulate || d.row_sums || d.epilogue != Epilogue::none;
  if (d.out == DType::i32 && extras) return "an int8 product has no bias, epilogue, accumulation or row sums";
  if (is_fp8(d.a) && d.row_sums) return "an fp8 product has no row sums";
  if (d.fast_accumulate && !is_fp8(d.a)) return fmt::format("only fp8 is accumulated fast, not {}", name_of(d.a));
  if (d.accumulate && d.epilogue != Epilogue::none) return "a product with an epilogue does not accumulate";
  for (const auto& [name, stride, row] :
       {std::tuple{"a", d.a_stride, d.transpose_a ? d.m : d.k}, std::tuple{"b", d.b_stride, d.transpose_b ? d.k : d.n},
        std::tuple{"out", d.out_stride, d.n}})
    if (stride != 0 && stride < row) return fmt::format("{}_stride {} is less than a row of {}", name, stride, row);
  const bool gradient = d.epilogue == Epilogue::gelu_tanh_gradient || d.epilogue == Epilogue::gelu_erf_gradient;
  if (d.bias && gradient) return "a product with a gradient as its epilogue has no bias";
  return std::nullopt;
}

}  // namespace assay::ops
