// The sensors of one GPU, read through NVML, and the errors that it counts while a case runs.
#pragma once

#include "harness/machine/nvml.h"
#include "harness/record/metric.h"
#include "harness/sensors/sensors.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// "gpu_clock", "gpu_memory_clock" (Hz), "gpu_power" (W, averaged by the GPU), "gpu_power_instant" (W), "gpu_energy" (J
// since the case began), "gpu_temperature" (degC), "gpu_throttle_reasons" (bits of ThrottleReason), "gpu_utilisation"
// (share of time), "gpu_memory_used" (B), "gpu_pcie_sent", "gpu_pcie_received", "gpu_nvlink_sent",
// "gpu_nvlink_received" (B/s), "gpu_memory_temperature" (degC), and counts since the case began: "gpu_ecc_corrected",
// "gpu_ecc_uncorrected", "gpu_rows_remapped", "gpu_pcie_replays", "gpu_nvlink_errors" (1). Values that the driver
// refuses are absent.
class GpuSensor : public Sensor {
 public:
  explicit GpuSensor(NvmlDevice device);
  void begin() override;
  void read(double seconds, std::vector<Reading>& readings) override;

 private:
  struct Link {
    std::optional<double> bytes;
    double seconds = 0;
  };
  void read_links(double seconds, std::vector<Reading>& readings);
  void read_slow_values(std::vector<Reading>& readings);

  NvmlDevice device_;
  bool partitioned_;  // by MIG: its energy counter is that of all slices
  std::optional<double> energy_at_begin_;
  GpuErrorCounts errors_at_begin_;
  Link sent_, received_;
  double slow_values_at_ = -1e9;  // when the bus and the error counters were last read: the bus takes 20 ms
};

// The sensor of the GPU with this UUID or PCI address; null without NVML, or if it knows neither.
std::unique_ptr<Sensor> find_gpu_sensor(const std::string& uuid, const std::string& pci);

// Mean power (W) over [from, to] from an energy counter's series, interpolated between its readings; absent for less
// than a second, or if the series does not cover it. The counter moves about ten times per second, so a mean over one
// second may be off by 10 %, over ten seconds by 1 %.
std::optional<double> mean_watts(const Series& energy, double from, double to);

// Why the GPU was slowed down in [from, to]: "thermal (software), power brake"; empty if it was not, and for less than
// a second. Reaching the power limit is not a reason: dense matrix work does so.
std::string slowed_by(const Series& reasons, double from, double to);
// A locked clock has no throttle reason: in [from, to] it stayed constant below `max_clock` (Hz) while the driver gave
// no reason, not even idle. "locked at 1.41 of 1.98 GHz"; empty if it was not locked, is unknown, or for less than a
// second.
std::string locked_clock(const Series& clock, const Series& reasons, double max_clock, double from, double to);

// Watches one GPU for errors, from construction on.
class GpuHealth {
 public:
  GpuHealth(const std::string& uuid, const std::string& pci);
  // Whether NVML knows the GPU; otherwise there is nothing to watch.
  bool present() const { return device_.has_value(); }
  // Why the GPU was slow in [from, to] of a case with these series, by the two functions above; empty if it was not.
  std::string slowness(const std::map<std::string, Series>& telemetry, double from, double to) const;
  // Errors since construction: "XID 79", "2 uncorrectable ECC errors", ...
  std::vector<std::string> take();

 private:
  std::optional<NvmlDevice> device_;
  std::unique_ptr<XidWatch> xids_;
  GpuErrorCounts before_;
};

}  // namespace assay
