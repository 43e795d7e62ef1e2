// Spans: run, case, sample or step, and phases inside. Each is an NVTX range in the domain `assay` and, if a timeline
// is collected, one event of a Chrome trace.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::trace {

enum class Category : std::uint32_t {
  run = 1,
  case_ = 2,
  sample = 3,
  phase = 4,
  layer = 5,
  communication = 6,
  data = 7,
  gpu = 8  // GPU activity, not a host span
};
// The names that tools and the timeline show: run, case, sample, phase, layer, communication, data, gpu.
std::string_view name_of(Category category);

namespace detail {
// The sinks of spans, as bits. `unprobed` until the first span checks whether an NVTX tool is attached.
enum Sink : std::uint32_t { nvtx = 1, timeline = 2, listener = 4, unprobed = 8 };
extern std::atomic<std::uint32_t> sinks;
// Opens the span in every sink that wants `category`; returns the sinks to close it in.
std::uint32_t open(Category category, const char* name, std::int64_t payload, std::int64_t& start_ns);
void close(std::uint32_t opened, Category category, const char* name, std::int64_t payload,
           std::int64_t start_ns) noexcept;
}  // namespace detail

// A range on the calling thread, closed by the destructor (also during unwinding); ranges must nest. Without sinks it
// costs one load and two predictable branches. `name` must outlive the span.
class Span {
 public:
  explicit Span(Category category, const char* name, std::int64_t payload = 0)
      : name_(name), payload_(payload), category_(category) {
    const auto sinks = detail::sinks.load(std::memory_order_relaxed);
    // The listener only gets phases, so samples stay free in a worker that has one.
    const auto wanted = category == Category::phase ? sinks : sinks & ~std::uint32_t{detail::listener};
    if (wanted != 0) [[unlikely]]
      opened_ = detail::open(category, name, payload, start_ns_);
  }
  ~Span() {
    if (opened_ != 0) [[unlikely]]
      detail::close(opened_, category_, name_, payload_, start_ns_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  const char* name_;
  std::int64_t payload_;
  std::int64_t start_ns_ = 0;
  Category category_;
  std::uint32_t opened_ = 0;
};

// Starts collecting the host timeline (--trace).
void start_timeline();
bool timeline_on();
// Whether an NVTX tool (a profiler, an injected library) is attached to this process.
bool nvtx_attached();

struct Entry {
  std::string name;
  Category category;
  std::int64_t payload;
  std::int64_t start_ns;  // CLOCK_REALTIME, so that ranks align
  std::int64_t duration_ns;
  int thread;  // 0, 1, ... in the order of the threads' first spans; or gpu_track()
};
// The tracks of a GPU's streams: several each, since branches of a replayed graph run concurrently in one stream, and
// slices of one track may not overlap.
inline constexpr int first_gpu_track = 1 << 16, gpu_lanes = 8;
constexpr int gpu_track(int stream, int lane) { return first_gpu_track + stream * gpu_lanes + lane; }
// The maximum number of entries that a thread keeps between two drains; more are only counted.
inline constexpr std::size_t max_entries_per_thread = std::size_t{1} << 20;

// Returns and clears what was collected since the last call: finished spans, ordered by start. For a thread that
// exceeded its maximum, an entry "(dropped)" has the count as payload.
std::vector<Entry> drain_timeline();

// Sets the listener for the names of case-level phases (setup, warm-up, measure, verify): called as one opens, and
// again with the enclosing one when a nested one ends, on the thread that opened it. The worker passes them to the
// supervisor, which reports them if the worker dies. An empty function removes the listener.
void on_phase(std::function<void(std::string_view)> listener);

// Writes a Chrome trace (JSON) for Perfetto: one process per rank, one track per thread. Times count from the earliest
// entry, whose CLOCK_REALTIME nanoseconds are in otherData.start_ns. Throws Error if it cannot write.
struct RankTimeline {
  int rank;
  std::string host;
  std::vector<Entry> entries;
};
void write_chrome_trace(const std::string& path, const std::vector<RankTimeline>& ranks);

}  // namespace assay::trace
