#include "harness/plan/estimate.h"

#include <algorithm>

namespace assay {

namespace {

// Modest, so that the estimate is an upper limit.
struct Rates {
  double fill;   // bytes per second: random numbers, then a check that reads them again
  double moved;  // bytes per second
  double flops;
};
constexpr Rates core_rates{1e9, 5e9, 2e10}, gpu_rates{5e10, 1e11, 1e13};

}  // namespace

double estimate_seconds(const PlannedCase& planned, const World& world) {
  constexpr double start_seconds = 0.05;
  Protocol protocol;
  planned.protocol.apply(protocol);
  const bool on_cpu = world.device == DeviceKind::cpu;
  const Rates& rates = on_cpu ? core_rates : gpu_rates;
  const double cores = on_cpu ? std::max(1.0, static_cast<double>(world.cpus) * world.nodes / world.ranks) : 1;
  const double repetition =
      std::max(planned.estimate.flops / (rates.flops * cores), planned.estimate.bytes / (rates.moved * cores));
  // With gpus=each the ranks sample one after another.
  const double turns = gpus_of(planned.params) == Gpus::each ? world.ranks : 1;
  return start_seconds + planned.estimate.memory_bytes / rates.fill +
         turns * (std::max(protocol.warmup_seconds, repetition) +
                  std::max({protocol.max_seconds, planned.estimate.seconds, repetition}));
}

}  // namespace assay
