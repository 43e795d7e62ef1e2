#include "harness/plan/estimate.h"

#include <algorithm>

namespace assay {

double estimate_seconds(const PlannedCase& planned, const World& world) {
  constexpr double start_seconds = 0.05;
  constexpr double fill_bytes_a_second = 1e9;   // random numbers, then the check reads all again
  constexpr double moved_bytes_a_second = 5e9;  // a core
  constexpr double flops_a_second = 2e10;       // a core
  Protocol protocol;
  planned.protocol.apply(protocol);
  const double cores = std::max(1.0, static_cast<double>(world.cpus) / world.ranks);
  const double repetition = std::max(planned.estimate.flops / (flops_a_second * cores),
                                     planned.estimate.bytes / (moved_bytes_a_second * cores));
  // One GPU after another: each rank samples in its turn.
  const double turns = gpus_of(planned.params) == "each" ? world.ranks : 1;
  return start_seconds + planned.estimate.memory_bytes / fill_bytes_a_second +
         turns * (std::max(protocol.warmup_seconds, repetition) +
                  std::max({protocol.max_seconds, planned.estimate.seconds, repetition}));
}

}  // namespace assay
