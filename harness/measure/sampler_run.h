// Sampler::run, shared by the sampler's two source files.
#pragma once

#include "harness/measure/sampler.h"

namespace assay {

template <typename Call>
void Sampler::run(const Call& call) {
  if (!slow_) [[likely]] {
    call();
    return;
  }
  const double start = clock_();
  call();
  stream_->synchronize();
  const double end = clock_() + (clock_() - start);
  while (clock_() < end) {
  }
}

}  // namespace assay
