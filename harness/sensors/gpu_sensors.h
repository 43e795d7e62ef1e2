// The sensors of one GPU, read through NVML, and the errors that it counts while a case runs.
#pragma once

#include "harness/machine/counters.h"
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
// since the case began), "gpu_temperature" (degC), "gpu_throttle_reasons" (bits of ThrottleReason),
// "gpu_throttled_software_thermal", "gpu_throttled_hardware_thermal", "gpu_throttled_power_brake" (s since the case
// began), "gpu_utilisation" (share of time), "gpu_memory_used" (B), "gpu_pcie_sent", "gpu_pcie_received",
// "gpu_nvlink_sent", "gpu_nvlink_received" (B/s), "gpu_memory_temperature" (degC), "sm_active", "tensor_active",
// "dram_active" (GpuActivity), and counts since the case began: "gpu_ecc_corrected", "gpu_ecc_uncorrected",
// "gpu_rows_remapped", "gpu_pcie_replays", "gpu_nvlink_errors", "gpu_nvlink_corrected" (1). Values that the driver
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
  void read_throttling(std::vector<Reading>& readings);
  void read_activity(double seconds, std::vector<Reading>& readings);
  void read_links(double seconds, std::vector<Reading>& readings);
  void read_slow_values(std::vector<Reading>& readings);

  NvmlDevice device_;
  bool partitioned_;  // divided by MIG: its energy and activity are those of all slices
  ThrottleCounters throttle_;
  ThrottleTimes throttled_at_begin_;
  ActivityWatch activity_;
  double activity_at_ = -1e9;  // when it was last read
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

// "89 degC, 1.41 GHz, 455 W" by the readings in [from, to]: the highest temperature, means of clock and power; those
// that there are.
std::string gpu_levels(const std::map<std::string, Series>& telemetry, double from, double to);

// Why the GPU was slowed down in [from, to] of a case with these series: "thermal (software), power brake"; empty if it
// was not. By the counters of throttled time, between the readings around the interval, and by the reasons given at the
// readings in it. Reaching the power limit is not a reason: dense matrix work does so.
std::string slowed_by(const std::map<std::string, Series>& telemetry, double from, double to);
// Indices of the samples in which a counter of throttled time grew. Sample i lasts from at[i] to at[i + 1], the last
// one to `end`; growth is known between two readings, so samples shorter than their distance are marked together.
// Absent if this GPU does not count it, or nobody knows when the samples were.
std::optional<std::vector<int>> throttled_samples(const std::map<std::string, Series>& telemetry,
                                                  const std::vector<double>& at, double end);
// A locked clock has no throttle reason: in [from, to] it stayed constant below `max_clock` (Hz) while the driver gave
// no reason, not even idle. "locked at 1.41 of 1.98 GHz"; empty if it was not locked, is unknown, or for fewer than
// three readings.
std::string locked_clock(const Series& clock, const Series& reasons, double max_clock, double from, double to);

// Watches one GPU for errors, from construction on.
class GpuHealth {
 public:
  GpuHealth(const std::string& uuid, const std::string& pci);
  // Whether NVML knows the GPU; otherwise there is nothing to watch.
  bool present() const { return device_.has_value(); }
  // Why the GPU was slow in [from, to] of a case with these series, by slowed_by and locked_clock; empty if it was not.
  std::string slowness(const std::map<std::string, Series>& telemetry, double from, double to) const;
  // "250 corrected NVLink errors per second" in the `seconds` since construction; empty if they were few.
  std::string corrected_link_errors(double seconds) const;
  // The growth of its error counters since construction, corrected errors included, and its XIDs as "xid_79".
  // Sorted by name.
  std::vector<ErrorCounter> counted();
  // Errors since construction: "XID 79", "2 uncorrectable ECC errors", ... Corrected errors do not count.
  std::vector<std::string> take();

 private:
  std::optional<NvmlDevice> device_;
  std::unique_ptr<XidWatch> xids_;
  std::map<std::uint64_t, std::uint64_t> xids_seen_;  // how often each
  GpuErrorCounts at_start_, before_;                  // before_: at the last call of take()
};

}  // namespace assay
