#include "harness/run/gpu_energy.h"

#include "harness/comm/gather.h"
#include "harness/plan/case.h"
#include "harness/sensors/gpu_sensors.h"

#include <cmath>
#include <limits>
#include <numeric>

namespace assay {

std::optional<double> gpu_watts(const std::map<std::string, Series>& telemetry, double from, double to,
                                Communicator& comm) {
  const auto energy = telemetry.find("gpu_energy");
  const auto own = energy == telemetry.end() ? std::nullopt : mean_watts(energy->second, from, to);
  constexpr double unknown = -1;
  double sum = 0;
  bool whole = true;
  for (const double watts : gather(comm, own.value_or(unknown))) {
    whole = whole && watts > 0;
    sum += watts;
  }
  return whole ? std::optional(sum) : std::nullopt;
}

bool samples_fill_window(const Measurement& measured) {
  if (!measured.pieces.empty()) return true;  // pieces follow each other without gaps
  constexpr double nearly_all = 0.9;
  const double per_repetition = std::accumulate(measured.values.begin(), measured.values.end(), 0.0);
  return per_repetition * static_cast<double>(measured.repetitions) >= nearly_all * measured.window_seconds;
}

void add_gpu_energy(double watts, bool filled, std::vector<Metric>& metrics) {
  std::vector<Metric> added = {value_metric("gpu_power", watts, "W")};
  for (const Metric& metric : metrics) {
    if (!filled || metric.name != "throughput" || !metric.value || !metric.unit.ends_with("/s")) continue;
    const std::string unit = metric.unit.substr(0, metric.unit.size() - 1) + "J";
    added.push_back(value_metric("gpu_energy_efficiency", *metric.value / watts, unit, Better::higher));
  }
  metrics.insert(metrics.end(), added.begin(), added.end());
}

}  // namespace assay
