// Spans: run, case, sample or step, phases inside. Each is an NVTX range in the domain `assay` and,
// while a timeline is collected, an entry that becomes one event of a Chrome trace.
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
  gpu = 8  // what a GPU did: no span of the host
};
// run, case, sample, phase, layer, communication, data, gpu: the names that tools and the timeline show.
std::string_view name_of(Category category);

namespace detail {
// Who listens to spans, as bits. `unprobed` until the first span has asked NVTX whether a tool is attached.
enum Sink : std::uint32_t { nvtx = 1, timeline = 2, listener = 4, unprobed = 8 };
extern std::atomic<std::uint32_t> sinks;
// Opens in every sink that wants `category`; returns the sinks that must be told of the end.
std::uint32_t open(Category category, const char* name, std::int64_t payload, std::int64_t& start_ns);
void close(std::uint32_t opened, Category category, const char* name, std::int64_t payload,
           std::int64_t start_ns) noexcept;
}  // namespace detail

// A range on the calling thread, closed by the destructor (also while an exception passes); must nest. When nobody
// listens it costs one load and two predictable branches. `name` must outlive the span.
class Span {
 public:
  explicit Span(Category category, const char* name, std::int64_t payload = 0)
      : name_(name), payload_(payload), category_(category) {
    const auto sinks = detail::sinks.load(std::memory_order_relaxed);
    // Only phases are told to the listener, so samples stay free of cost inside a worker that listens.
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

// Collection of the host timeline (--trace).
void start_timeline();
bool timeline_on();
// Whether an NVTX tool (a profiler, an injected library) is attached to this process.
bool nvtx_attached();

struct Entry {
  std::string name;
  Category category;
  std::int64_t payload;
  std::int64_t start_ns;  // CLOCK_REALTIME, so that ranks lie side by side
  std::int64_t duration_ns;
  int thread;  // 0, 1, ... in the order in which threads opened their first span; or gpu_track()
};
// The tracks of a GPU's streams: several each, since branches of a replayed graph run side by side in one stream, and
// slices of one track may not overlap.
inline constexpr int first_gpu_track = 1 << 16, gpu_lanes = 8;
constexpr int gpu_track(int stream, int lane) { return first_gpu_track + stream * gpu_lanes + lane; }
// The most entries a thread keeps between two takes; more are counted, not kept.
inline constexpr std::size_t max_entries_per_thread = std::size_t{1} << 20;

// Takes what was collected since the last call: spans that have ended, in the order of their start. Where a thread
// had more than it may keep, an entry "(dropped)" carries the count as its payload.
std::vector<Entry> take_timeline();

// Told the name of each case-level phase (setup, warm-up, measure, verify) as it opens, and the enclosing one again
// when a nested one ends: the worker passes it to the supervisor, which names it when the worker dies. Called on the
// thread that opened the phase; an empty function ends it.
void on_phase(std::function<void(std::string_view)> listener);

// Writes a Chrome trace (JSON) that Perfetto opens: a process a rank, a track a thread. Times in the file count from
// the earliest entry, whose CLOCK_REALTIME nanoseconds are in otherData.start_ns. Throws Error when it cannot write.
struct RankTimeline {
  int rank;
  std::string host;
  std::vector<Entry> entries;
};
void write_chrome_trace(const std::string& path, const std::vector<RankTimeline>& ranks);

}  // namespace assay::trace
