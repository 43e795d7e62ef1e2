// The inputs and results of the memory suite's loops, which are the same on every device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace assay::memory {

enum class Op { read, write, copy, scale, add, triad, latency, dot };

struct OpInfo {
  std::string_view name;
  Op op;
  int inputs;
  bool stores;
  constexpr int arrays() const { return inputs + (stores ? 1 : 0); }  // STREAM counts the same
  constexpr bool sums() const { return op == Op::read || op == Op::dot; }
};

inline constexpr std::array<OpInfo, 8> ops{{{"read", Op::read, 1, false},
                                            {"write", Op::write, 0, true},
                                            {"copy", Op::copy, 1, true},
                                            {"scale", Op::scale, 1, true},
                                            {"add", Op::add, 2, true},
                                            {"triad", Op::triad, 2, true},
                                            {"latency", Op::latency, 1, false},
                                            {"dot", Op::dot, 2, false}}};

// The factor of scale and triad, and the value that write stores: small integers, so that all results are exact.
inline constexpr double factor = 3.0;
inline constexpr double written = 7.0;

// Element i of input array 0 or 1: a pseudo-random integer from 1 to 1024, so that results are exact in f64 and a
// misplaced element is noticed.
constexpr double input(int array, std::size_t i) {
  const auto position = static_cast<std::uint64_t>(i) + (array ? std::uint64_t{0x5bd1e995} : 0);
  return static_cast<double>(1 + ((position * 0x9e3779b97f4a7c15u) >> 54));
}

// Element i of the output; 0 if there is none.
constexpr double expected(Op op, std::size_t i) {
  switch (op) {
    case Op::write: return written;
    case Op::copy: return input(0, i);
    case Op::scale: return factor * input(0, i);
    case Op::add: return input(0, i) + input(1, i);
    case Op::triad: return input(0, i) + factor * input(1, i);
    case Op::read:
    case Op::latency:
    case Op::dot: break;
  }
  return 0;
}

}  // namespace assay::memory
