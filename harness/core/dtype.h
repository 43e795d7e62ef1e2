// Element types, their names, sizes and conversions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace assay {

enum class DType { f64, f32, tf32, bf16, fp16, fp8_e4m3, fp8_e5m2, i64, i32, s8, u8 };

// Bytes of one element; tf32 is stored as f32.
std::size_t size_of(DType dtype);
std::string_view name_of(DType dtype);
std::optional<DType> dtype_from(std::string_view name);

// bfloat16 as stored: the upper half of an f32.
struct bf16 {
  std::uint16_t bits = 0;

  bf16() = default;
  // Rounds to nearest even; NaN stays NaN.
  explicit bf16(float value) {
    const auto u = std::bit_cast<std::uint32_t>(value);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<std::uint16_t>(nan ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

}  // namespace assay
