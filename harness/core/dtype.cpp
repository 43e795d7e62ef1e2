#include "harness/core/dtype.h"

#include <array>

namespace assay {

namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<Row, 11> rows{{{DType::f64, "f64", 8},
                                    {DType::f32, "f32", 4},
                                    {DType::tf32, "tf32", 4},
                                    {DType::bf16, "bf16", 2},
                                    {DType::fp16, "fp16", 2},
                                    {DType::fp8_e4m3, "fp8_e4m3", 1},
                                    {DType::fp8_e5m2, "fp8_e5m2", 1},
                                    {DType::i64, "i64", 8},
                                    {DType::i32, "i32", 4},
                                    {DType::s8, "s8", 1},
                                    {DType::u8, "u8", 1}}};

}  // namespace

std::size_t size_of(DType dtype) { return rows[static_cast<std::size_t>(dtype)].bytes; }

std::string_view name_of(DType dtype) { return rows[static_cast<std::size_t>(dtype)].name; }

std::optional<DType> dtype_from(std::string_view name) {
  for (const Row& row : rows)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

}  // namespace assay
