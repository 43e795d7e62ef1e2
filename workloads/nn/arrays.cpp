#include "workloads/nn/arrays.h"

#include "harness/core/error.h"

#include <algorithm>

namespace assay::nn {

namespace {

// Infinities and NaNs have an exponent of all ones.
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

void multiply(Device& device, Stream& stream, void* values, DType dtype, std::int64_t count, double factor) {
  if (device.kind() == DeviceKind::cpu) return multiply(values, dtype, count, factor);
  constexpr std::int64_t max_piece = std::int64_t{1} << 20;
  const Buffer piece = device.allocate(static_cast<std::size_t>(max_piece) * size_of(dtype), Memory::pinned);
  for (std::int64_t first = 0; first < count; first += max_piece) {
    const std::int64_t elements = std::min(max_piece, count - first);
    const std::size_t bytes = static_cast<std::size_t>(elements) * size_of(dtype);
    std::byte* from = static_cast<std::byte*>(values) + static_cast<std::size_t>(first) * size_of(dtype);
    device.copy(piece.data(), from, bytes, stream);
    stream.synchronize();
    multiply(piece.data(), dtype, elements, factor);
    device.copy(from, piece.data(), bytes, stream);
    stream.synchronize();
  }
}

}  // namespace assay::nn
