// Random fills: a counter gives 64 bits, and each 16 of them index a table of the normal distribution's slices.
#include "workloads/ops/random.h"

#include "harness/core/error.h"

#include <boost/math/special_functions/erf.hpp>

#include <algorithm>
#include <numbers>

namespace assay::ops {

namespace {

constexpr std::int64_t slices = 65536;

std::vector<float> make_normal_table() {
  std::vector<float> table(slices);
  for (std::int64_t i = 0; i < slices / 2; ++i) {
    const double p = (static_cast<double>(i) + 0.5) / static_cast<double>(slices);
    const auto x = static_cast<float>(std::numbers::sqrt2 * boost::math::erf_inv(2.0 * p - 1.0));
    table[static_cast<std::size_t>(i)] = x;
    table[static_cast<std::size_t>(slices - 1 - i)] = -x;
  }
  return table;
}

// Calls store(i, value) with `bits` bits per element; element i uses part i % per of word i / per, lowest bits first.
template <int bits, typename Store>
void for_each_part(std::int64_t begin, std::int64_t end, const Rng& rng, Store store) {
  constexpr std::int64_t per = 64 / bits;
  for (std::int64_t i = begin; i < end;) {
    const std::int64_t word = i / per;
    std::uint64_t value = rng.u64(static_cast<std::uint64_t>(word)) >> (bits * (i % per));
    for (; i < end && i / per == word; ++i, value >>= bits) store(i, value & ((1u << bits) - 1u));
  }
}

template <typename T>
void normal(void* data, std::int64_t begin, std::int64_t end, const Rng& rng) {
  const float* values = normal_table().data();
  T* to = static_cast<T*>(data);
  for_each_part<16>(begin, end, rng, [=](std::int64_t i, std::uint64_t v) { to[i] = T(values[v]); });
}

// 16 bits choose the slice as above, the other 48 a point within it, so all significant bits of an f64 are random.
void normal_f64(void* data, std::int64_t begin, std::int64_t end, const Rng& rng) {
  const std::vector<float>& table = normal_table();
  auto* to = static_cast<double*>(data);
  for (std::int64_t i = begin; i < end; ++i) {
    const std::uint64_t word = rng.u64(static_cast<std::uint64_t>(i));
    const std::size_t slice = word & 0xffff;
    const double low = static_cast<double>(table[slice]);
    const double high = static_cast<double>(table[std::min<std::size_t>(slice + 1, slices - 1)]);
    to[i] = low + (high - low) * (static_cast<double>(word >> 16) * 0x1p-48 - 0.5);
  }
}

}  // namespace

const std::vector<float>& normal_table() {
  static const std::vector<float> table = make_normal_table();
  return table;
}

void fill_random(void* data, DType dtype, std::int64_t begin, std::int64_t end, const Rng& rng, bool seven_bits) {
  const std::uint64_t mask = seven_bits ? 0x7f : 0xff;
  switch (dtype) {
    case DType::f64: return normal_f64(data, begin, end, rng);
    case DType::f32: return normal<float>(data, begin, end, rng);
    case DType::tf32: return normal<float>(data, begin, end, rng);
    case DType::bf16: return normal<bf16>(data, begin, end, rng);
    case DType::fp16: return normal<fp16>(data, begin, end, rng);
    case DType::fp8_e4m3: return normal<fp8_e4m3>(data, begin, end, rng);
    case DType::fp8_e5m2: return normal<fp8_e5m2>(data, begin, end, rng);
    case DType::u8:
      return for_each_part<8>(begin, end, rng,
                              [to = static_cast<std::uint8_t*>(data), mask](std::int64_t i, std::uint64_t v) {
                                to[i] = static_cast<std::uint8_t>(v & mask);
                              });
    case DType::s8:
      return for_each_part<8>(begin, end, rng, [to = static_cast<std::int8_t*>(data)](std::int64_t i, std::uint64_t v) {
        to[i] = static_cast<std::int8_t>(static_cast<std::uint8_t>(v));
      });
    default: throw Error(fmt::format("no random fill for {}", name_of(dtype)));
  }
}

}  // namespace assay::ops
