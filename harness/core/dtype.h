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

namespace detail {

// Narrows a float to `exponent` and `mantissa` bits (the low bits of the result), rounded to nearest even. Codes above
// `largest` become `beyond`, NaN becomes `nan`.
template <int exponent, int mantissa>
constexpr std::uint32_t narrowed(float value, std::uint32_t largest, std::uint32_t beyond, std::uint32_t nan) {
  constexpr int bias = (1 << (exponent - 1)) - 1;
  const auto all = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (all >> 31) << (exponent + mantissa);
  std::uint32_t u = all & 0x7fffffffu;
  if (u > 0x7f800000u) return sign | nan;
  if (u < static_cast<std::uint32_t>(127 + 1 - bias) << 23) {
    // Denormal: a multiple of the smallest step; adding 2^23 rounds to an integer.
    constexpr float steps = std::bit_cast<float>(static_cast<std::uint32_t>(127 + bias - 1 + mantissa) << 23);
    const float shifted = std::bit_cast<float>(u) * steps + 0x1p23f;
    return sign | (std::bit_cast<std::uint32_t>(shifted) & 0x7fffffu);
  }
  u += ((u >> (23 - mantissa)) & 1u) + (1u << (22 - mantissa)) - 1u;
  u = (u - (static_cast<std::uint32_t>(127 - bias) << 23)) >> (23 - mantissa);
  return sign | (u > largest ? beyond : u);
}

// The value of a finite code.
template <int exponent, int mantissa>
constexpr float widened(std::uint32_t bits) {
  constexpr int bias = (1 << (exponent - 1)) - 1;
  const std::uint32_t sign = (bits >> (exponent + mantissa)) << 31;
  const std::uint32_t e = (bits >> mantissa) & ((1u << exponent) - 1u);
  const std::uint32_t m = bits & ((1u << mantissa) - 1u);
  if (e == 0) {
    constexpr float step = std::bit_cast<float>(static_cast<std::uint32_t>(127 - bias + 1 - mantissa) << 23);
    const float value = static_cast<float>(m) * step;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | (e + static_cast<std::uint32_t>(127 - bias)) << 23 | m << (23 - mantissa));
}

}  // namespace detail

// IEEE binary16 as stored. Rounds to nearest even; values above 65,504 become infinity.
struct fp16 {
  std::uint16_t bits = 0;

  fp16() = default;
  explicit fp16(float value)
      : bits(static_cast<std::uint16_t>(detail::narrowed<5, 10>(value, 0x7bff, 0x7c00, 0x7e00))) {}
  explicit operator float() const {
    const std::uint32_t rest = bits & 0x7fffu;
    if (rest < 0x7c00u) return detail::widened<5, 10>(bits);
    return std::bit_cast<float>((static_cast<std::uint32_t>(bits) >> 15) << 31 | 0x7f800000u | (rest & 0x3ffu) << 13);
  }
};

// The 8-bit floats of "FP8 Formats for Deep Learning" (Micikevicius et al., 2022). Values above the largest finite one
// (448) saturate to it, as in NVIDIA's saturating conversions; e4m3 has no infinity.
struct fp8_e4m3 {
  std::uint8_t bits = 0;

  fp8_e4m3() = default;
  explicit fp8_e4m3(float value) : bits(static_cast<std::uint8_t>(detail::narrowed<4, 3>(value, 0x7e, 0x7e, 0x7f))) {}
  explicit operator float() const {
    if ((bits & 0x7fu) == 0x7fu) return std::bit_cast<float>(0x7fc00000u);
    return detail::widened<4, 3>(bits);
  }
};

// The same with 5 exponent bits, up to 57,344. It has infinities, but conversions never produce them.
struct fp8_e5m2 {
  std::uint8_t bits = 0;

  fp8_e5m2() = default;
  explicit fp8_e5m2(float value) : bits(static_cast<std::uint8_t>(detail::narrowed<5, 2>(value, 0x7b, 0x7b, 0x7e))) {}
  explicit operator float() const {
    const std::uint32_t rest = bits & 0x7fu;
    if (rest < 0x7cu) return detail::widened<5, 2>(bits);
    return std::bit_cast<float>((static_cast<std::uint32_t>(bits) >> 7) << 31 | 0x7f800000u | (rest & 3u) << 21);
  }
};

}  // namespace assay
