// What a GPU did and when, as the CUDA module collects it under --trace; and what of it belongs to which span.
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

// A kernel, a copy or a fill. Times on the timeline's clock.
struct GpuActivity {
  std::string name;  // the kernel's own, "memcpy HtoD", "memset"
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t launched_ns = 0;  // when the host's call that caused it began; 0: unknown
  std::uint32_t stream = 0;      // as the driver numbers them
  bool communication = false;    // a kernel of NCCL
};

class GpuRecorder {
 public:
  virtual ~GpuRecorder() = default;
  // Everything that has ended since the last call; waits for what the driver still holds back.
  virtual std::vector<GpuActivity> take() = 0;
  // Activities since the last call that were lost for want of buffers, or whose time the driver could not tell.
  virtual std::int64_t dropped() = 0;
};

// Starts collecting in this process, through libassay-cuda.so and CUPTI; null, with the reason, where that is not
// possible. From here on every launch costs a few microseconds more.
std::unique_ptr<GpuRecorder> make_gpu_recorder(std::string& why_not);

// Nanoseconds on the timeline's clock.
std::int64_t timeline_now();

// Seconds of the GPU by span: for each name of spans of category `sample` (step, forward, ...) the mean over its spans
// of the time in which the GPU worked for it ("gpu:forward"), was idle between its first and last activity
// ("gpu_idle:forward"), and communicated while it computed ("gpu_overlap:forward", where it communicated at all). An
// activity belongs to the innermost span in which it was launched, and to those around it; data spans are other
// threads'. A replayed CUDA graph was launched as a whole.
std::vector<std::pair<std::string, double>> gpu_time_by_span(const std::vector<Entry>& spans,
                                                             const std::vector<GpuActivity>& activities);

// The first `most` activities as entries of the timeline, by start, with the innermost span's name behind each. A
// stream has a track, and others where its activities overlap.
std::vector<Entry> gpu_entries(const std::vector<Entry>& spans, const std::vector<GpuActivity>& activities,
                               std::size_t most = std::numeric_limits<std::size_t>::max());

}  // namespace assay::trace
