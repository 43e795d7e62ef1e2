// The clock of the training loop.
#pragma once

#include <chrono>

namespace assay::training {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace assay::training
