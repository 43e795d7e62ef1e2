// Sampler::run, shared by the sampler's two source files.
#pragma once

#include "harness/sampling/sampler.h"

#include <algorithm>

namespace assay {

template <typename Call>
void Sampler::run(const Call& call) {
  if (!slow_) [[likely]] {
    call();
    return;
  }
  // A collective of a microsecond would drown in the noise of the ranks' arrival.
  constexpr double min_seconds = 50e-6;
  const double start = clock_();
  call();
  stream_->synchronize();
  const double now = clock_();
  const double end = now + std::max(now - start, collective_ ? min_seconds : 0.0);
  while (clock_() < end) {
  }
}

}  // namespace assay
