// GPU energy of a measurement, summed over its ranks; never the power of the whole machine.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/record/metric.h"
#include "harness/sampling/sampler.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// Mean power of all ranks' GPUs together over [from, to], seconds since the case's start, by each rank's series
// "gpu_energy"; W. Absent for less than a second, or if a rank has no counter. Every rank calls it.
std::optional<double> gpu_watts(const std::map<std::string, Series>& telemetry, double from, double to,
                                Communicator& comm);

// Whether samples fill the window. Otherwise its energy includes what happens between them (flushing caches, ranks that
// agree), and work per joule is unknown.
bool samples_fill_window(const Measurement& measured);

// Adds "gpu_power" (W), and with `filled`, for a throughput in X/s, "gpu_energy_efficiency" in X/J: FLOP/J (which is
// FLOP/s per W), tokens/J, img/J.
void add_gpu_energy(double watts, bool filled, std::vector<Metric>& metrics);

}  // namespace assay
