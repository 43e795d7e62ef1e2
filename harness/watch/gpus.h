// The GPUs of a watched job, as NVML sees them while it makes steps.
#pragma once

#include "harness/record/metric.h"
#include "harness/sensors/series_builder.h"
#include "harness/watch/ranks.h"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace assay::watch {

// Over all GPUs of the job. Absent: the driver does not tell, or for fewer than five readings.
struct GpuUse {
  int count = 0;
  std::string name;                   // of the first
  std::optional<double> busy;         // fraction of the time in which a kernel ran: mean over the GPUs
  std::optional<double> busy_p95;     // p95 over its readings, of the busiest
  std::optional<double> memory;       // B, the most on one GPU
  std::optional<double> memory_room;  // B, of that one
  // Of the GPU that heat or the power supply slowed down longest.
  double slowed = 0;            // fraction of the time
  std::string slowed_by;        // "thermal (hardware)"
  int slowed_rank = 0;          // whose GPU it is
  std::optional<double> clock;  // its mean clock as a fraction of its highest
};

class JobGpus {
 public:
  // The GPU of this rank, once; a GPU that NVML does not know is not read.
  void add(const RankInfo& rank);
  void read(double seconds);
  // Of what was read so far. Ends the series: call it once.
  GpuUse take();
  // The series of the first GPU, after take().
  const std::map<std::string, Series>& series() const { return series_; }

 private:
  struct Gpu {
    RankInfo rank;
    std::unique_ptr<Sensor> sensor;
    SeriesBuilder builder;
  };
  std::map<std::string, Gpu> gpus_;  // by UUID, else by PCI address
  std::map<std::string, Series> series_;
  std::string first_;
};

// What these series of one GPU tell of it.
GpuUse use_of_gpu(const std::map<std::string, Series>& series, std::optional<double> max_clock);

// The FLOP/s of one such GPU at this dtype by its hardware sheet, and which sheet and source that is.
struct SheetPeak {
  double flops = 0;
  std::string source;
};
std::optional<SheetPeak> peak_of_gpu(const std::string& name, const std::string& dtype);

}  // namespace assay::watch
