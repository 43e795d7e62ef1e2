#include "workloads/nn/arrays.h"

#include "harness/core/error.h"

#include <algorithm>
#include <cstdint>

namespace assay::nn {

namespace {

// An exponent of ones: an infinity, or not a number.
template <typename Bits>
bool none_of_exponent(const void* values, std::int64_t count, Bits exponent) {
  const auto* bits = static_cast<const Bits*>(values);
  return std::none_of(bits, bits + count, [=](Bits value) { return (value & exponent) == exponent; });
}

template <typename Function>
void with_type(DType dtype, Function function) {
  if (dtype == DType::f64)
    function(double{});
  else if (dtype == DType::f32)
    function(float{});
  else
    throw Error(fmt::format("arrays of {} are not read on the host", name_of(dtype)));
}

}  // namespace

bool all_finite(const void* values, DType dtype, std::int64_t count) {
  switch (dtype) {
    case DType::f64: return none_of_exponent<std::uint64_t>(values, count, 0x7ff0000000000000u);
    case DType::f32:
    case DType::tf32: return none_of_exponent<std::uint32_t>(values, count, 0x7f800000u);
    case DType::bf16: return none_of_exponent<std::uint16_t>(values, count, 0x7f80u);
    case DType::fp16: return none_of_exponent<std::uint16_t>(values, count, 0x7c00u);
    default: return true;
  }
}

void multiply(void* values, DType dtype, std::int64_t count, double factor) {
  with_type(dtype, [&](auto type) {
    auto* all = static_cast<decltype(type)*>(values);
    for (std::int64_t i = 0; i < count; ++i) all[i] = static_cast<decltype(type)>(static_cast<double>(all[i]) * factor);
  });
}

void store(void* to, DType dtype, const double* values, std::int64_t count) {
  with_type(dtype, [&](auto type) {
    std::transform(values, values + count, static_cast<decltype(type)*>(to),
                   [](double value) { return static_cast<decltype(type)>(value); });
  });
}

void load(double* to, DType dtype, const void* values, std::int64_t count) {
  with_type(dtype, [&](auto type) {
    const auto* all = static_cast<const decltype(type)*>(values);
    std::transform(all, all + count, to, [](auto value) { return static_cast<double>(value); });
  });
}

}  // namespace assay::nn
