// Operands of the loops, and their closed-form sums.
#include "suites/peak/operands.h"

#include "harness/core/dtype.h"
#include "harness/core/rng.h"

#include <cstring>

namespace assay::peak {

namespace {

template <typename T>
void put(std::array<std::byte, register_bytes>& to, std::size_t i, T value) {
  std::memcpy(to.data() + i * sizeof(T), &value, sizeof(T));
}

template <typename T>
T get(const void* from, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(from) + i * sizeof(T), sizeof(T));
  return value;
}

void put_float(const Kernel& kernel, std::array<std::byte, register_bytes>& to, std::size_t i, double value) {
  switch (kernel.element) {
    case Element::f64: return put(to, i, value);
    case Element::f32: return put(to, i, static_cast<float>(value));
    case Element::bf16: return put(to, i, bf16(static_cast<float>(value)));
    case Element::int8: return put(to, i, static_cast<std::int8_t>(value));
  }
}

double value_of(const Kernel& kernel, const std::array<std::byte, register_bytes>& from, std::size_t i,
                bool is_unsigned) {
  switch (kernel.element) {
    case Element::f64: return get<double>(from.data(), i);
    case Element::f32: return static_cast<double>(get<float>(from.data(), i));
    case Element::bf16: return static_cast<double>(static_cast<float>(get<bf16>(from.data(), i)));
    case Element::int8: break;
  }
  if (is_unsigned) return static_cast<double>(get<std::uint8_t>(from.data(), i));
  return static_cast<double>(get<std::int8_t>(from.data(), i));
}

// Elements of one operand register or tile.
std::size_t elements_of(const Kernel& kernel) {
  // A tile of x is (rows, products), of y (products, columns) in groups that fill a 32-bit word: 1,024 bytes each.
  if (kernel.rows > 1) return register_bytes / (kernel.element == Element::bf16 ? 2 : 1);
  return static_cast<std::size_t>(kernel.lanes) * static_cast<std::size_t>(kernel.products);
}

}  // namespace

Operands make_operands(const Kernel& kernel, std::uint64_t seed) {
  const Rng rng(seed, "peak operands");
  Operands o;
  for (std::size_t i = 0; i < elements_of(kernel); ++i) {
    const std::uint64_t r = rng.u64(i);
    if (kernel.element == Element::int8) {
      put(o.x, i, static_cast<std::uint8_t>(r));
      const int y = static_cast<int>((r >> 8) % 253) - 126;
      put(o.y0, i, static_cast<std::int8_t>(y));
      put(o.y1, i, static_cast<std::int8_t>(((r >> 60) & 1) != 0 ? 1 - y : -1 - y));
      continue;
    }
    const auto dyadic = [](std::uint64_t bits) {
      const double magnitude = (16.0 + static_cast<double>(bits & 31)) / 32.0;
      return (bits & 32) != 0 ? -magnitude : magnitude;
    };
    const double y = dyadic(r >> 8);
    put_float(kernel, o.x, i, dyadic(r));
    put_float(kernel, o.y0, i, y);
    put_float(kernel, o.y1, i, -y + (((r >> 60) & 1) != 0 ? 1.0 : -1.0) / 64.0);
  }
  return o;
}

std::vector<std::byte> expected_sums(const Kernel& kernel, const Operands& o) {
  const auto products = static_cast<std::size_t>(kernel.products);
  const auto lanes = static_cast<std::size_t>(kernel.lanes);
  const auto columns = lanes / static_cast<std::size_t>(kernel.rows);
  const std::size_t group = kernel.element == Element::bf16 ? 2 : kernel.element == Element::int8 ? 4 : 1;
  std::vector<std::byte> sums(kernel.sum_bytes());
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    double pair = 0;
    for (std::size_t p = 0; p < products; ++p) {
      const bool tile = kernel.rows > 1;
      const std::size_t at_x = tile ? lane / columns * products + p : lane * products + p;
      // Row p / group of the y tile has one group of products per column.
      const std::size_t at_y = tile ? (p / group * columns + lane % columns) * group + p % group : at_x;
      pair += value_of(kernel, o.x, at_x, true) *
              (value_of(kernel, o.y0, at_y, false) + value_of(kernel, o.y1, at_y, false));
    }
    for (int i = 0; i < kernel.accumulators; ++i) {
      const double sum = i + static_cast<double>(kernel.pairs) * pair;
      const std::size_t index = static_cast<std::size_t>(i) * lanes + lane;
      if (kernel.element == Element::f64) {
        std::memcpy(sums.data() + index * 8, &sum, 8);
      } else if (kernel.element == Element::int8) {
        const auto whole = static_cast<std::int32_t>(sum);
        std::memcpy(sums.data() + index * 4, &whole, 4);
      } else {
        const auto single = static_cast<float>(sum);
        std::memcpy(sums.data() + index * 4, &single, 4);
      }
    }
  }
  return sums;
}

double sum_at(const Kernel& kernel, const void* sums, std::size_t index) {
  if (kernel.element == Element::f64) return get<double>(sums, index);
  if (kernel.element == Element::int8) return get<std::int32_t>(sums, index);
  return static_cast<double>(get<float>(sums, index));
}

}  // namespace assay::peak
