// Names, sizes and validity of matrix products.
#include "workloads/ops/matmul.h"

#include <fmt/format.h>

namespace assay::ops {

std::string_view name_of(WeightForm form) {
  switch (form) {
    case WeightForm::plain: return "plain";
    case WeightForm::packed: return "packed";
    case WeightForm::inner_product: return "inner_product";
  }
  return "?";
}

std::optional<std::string> problem_of(const MatmulDesc& d) {
  if (d.m < 1 || d.n < 1 || d.k < 1) return fmt::format("sizes must be at least 1, not {} x {} x {}", d.m, d.n, d.k);
  const bool known = (d.a == DType::f64 && d.b == DType::f64 && d.out == DType::f64) ||
                     (d.a == DType::f32 && d.b == DType::f32 && d.out == DType::f32) ||
                     (d.a == DType::bf16 && d.b == DType::bf16 && (d.out == DType::bf16 || d.out == DType::f32)) ||
                     (d.a == DType::u8 && d.b == DType::s8 && d.out == DType::i32);
  if (!known) return fmt::format("no product of {} x {} into {}", name_of(d.a), name_of(d.b), name_of(d.out));
  const bool extras = d.bias || d.accumulate || d.row_sums || d.epilogue != Epilogue::none;
  if (d.a == DType::u8 && extras) return "an int8 product has no bias, epilogue, accumulation or row sums";
  if (d.accumulate && d.epilogue != Epilogue::none) return "a product with an epilogue does not accumulate";
  const bool gradient = d.epilogue == Epilogue::gelu_tanh_gradient || d.epilogue == Epilogue::gelu_erf_gradient;
  if (d.bias && gradient) return "a product with a gradient as its epilogue has no bias";
  return std::nullopt;
}

}  // namespace assay::ops
