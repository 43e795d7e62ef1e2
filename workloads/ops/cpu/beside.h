// Times an own op and the library's on arrays of ones, so that an op's choice() can say what it gains. The own op is
// used even where it gains nothing, so that all runs on a machine compute the same bits.
#pragma once

#include "harness/core/clock.h"
#include "harness/device/device.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <vector>

namespace assay::ops {

class Ones {
 public:
  explicit Ones(std::size_t bytes) : lines_(bytes / sizeof(Line) + 1) {}
  void* data() { return lines_.data(); }

 private:
  struct alignas(64) Line {
    Line() { values.fill(1); }
    std::array<float, 16> values;
  };
  std::vector<Line> lines_;
};

// Seconds of the fastest of some runs.
template <typename Op>
double fastest_of(Op& op, const typename Op::Args& args) {
  double fastest = std::numeric_limits<double>::max();
  InlineStream stream;
  for (int run = 0; run < 4; ++run) {  // the first makes pages and kernels
    const auto start = Clock::now();
    op.run(stream, args);
    fastest = std::min(fastest, seconds_since(start));
  }
  return fastest;
}

}  // namespace assay::ops
