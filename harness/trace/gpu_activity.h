// GPU activities as the CUDA module collects them under --trace, and their attribution to spans.
#pragma once

#include "harness/trace/trace.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace assay::trace {

// A kernel, a copy or a fill. Times are on the timeline's clock.
struct GpuActivity {
  std::string name;  // the kernel's name, "memcpy HtoD", "memset"
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t launched_ns = 0;  // when the host call that launched it began; 0: unknown
  std::uint32_t stream = 0;      // as the driver numbers them
  bool communication = false;    // a kernel of NCCL
};

class GpuRecorder {
 public:
  virtual ~GpuRecorder() = default;
  // Everything that has finished since the last call, including what the driver still buffers.
  virtual std::vector<GpuActivity> drain() = 0;
  // Activities lost since the last call, because buffers were full or the driver reported no time.
  virtual std::int64_t dropped() = 0;
};

// Starts collecting in this process, by libassay-cuda.so and CUPTI; null, with the reason, if that is not possible.
// Every launch costs a few microseconds more from then on.
std::unique_ptr<GpuRecorder> make_gpu_recorder(std::string& why_not);

std::int64_t timeline_now();

// GPU seconds per span: for each name of spans of category `sample` (step, forward, ...) the mean, over its spans, of
// the time in which the GPU worked for it ("gpu:forward"), was idle between its first and last activity
// ("gpu_idle:forward"), and communicated while it computed ("gpu_overlap:forward", if it communicated at all). An
// activity belongs to the innermost span that launched it and to the enclosing ones; data spans belong to other
// threads. A replayed CUDA graph counts as one launch.
std::vector<std::pair<std::string, double>> gpu_time_by_span(const std::vector<Entry>& spans,
                                                             const std::vector<GpuActivity>& activities);

// The first `max` activities by start as timeline entries, with the name of the innermost span appended. Each stream
// has a track, and more if its activities overlap.
std::vector<Entry> gpu_entries(const std::vector<Entry>& spans, const std::vector<GpuActivity>& activities,
                               std::size_t max = std::numeric_limits<std::size_t>::max());

}  // namespace assay::trace
