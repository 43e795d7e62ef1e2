// Spans: passes each to the sinks that want it, and keeps the host timeline in one buffer per thread.
#include "harness/trace/trace.h"

#include "harness/trace/gpu_activity.h"
#include "harness/trace/nvtx.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>

namespace assay::trace {
namespace {

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// One thread's entries; other threads lock it only in drain_timeline().
struct Buffer {
  std::mutex mutex;
  std::vector<Entry> entries;
  std::int64_t dropped = 0;
  int thread = 0;
};

struct Registry {
  std::mutex mutex;
  std::vector<std::shared_ptr<Buffer>> buffers;
  int threads = 0;
  // Added to the steady clock: durations survive a step of the wall clock, and starts still align across ranks.
  std::atomic<std::int64_t> to_realtime_ns{0};
  std::mutex listener_mutex;
  std::shared_ptr<const std::function<void(std::string_view)>> listener;
};

// Never destroyed: threads may still close spans while the process exits.
Registry& registry() {
  static Registry& all = *new Registry;
  return all;
}

Buffer& buffer() {
  thread_local const std::shared_ptr<Buffer> mine = [] {
    auto made = std::make_shared<Buffer>();
    auto& all = registry();
    std::lock_guard lock(all.mutex);
    made->thread = all.threads++;
    all.buffers.push_back(made);
    return made;
  }();
  return *mine;
}

// The phases open on this thread, innermost last.
std::vector<const char*>& open_phases() {
  thread_local std::vector<const char*> names;
  return names;
}

void notify_listener(const char* name) {
  auto& all = registry();
  std::shared_ptr<const std::function<void(std::string_view)>> listener;
  {
    std::lock_guard lock(all.listener_mutex);
    listener = all.listener;
  }
  if (listener) (*listener)(name);
}

void set_sink(detail::Sink sink, bool on) {
  if (on)
    detail::sinks.fetch_or(sink);
  else
    detail::sinks.fetch_and(~std::uint32_t{sink});
}

}  // namespace

std::string_view name_of(Category category) {
  switch (category) {
    case Category::run: return "run";
    case Category::case_: return "case";
    case Category::sample: return "sample";
    case Category::phase: return "phase";
    case Category::layer: return "layer";
    case Category::communication: return "communication";
    case Category::data: return "data";
    case Category::gpu: return "gpu";
  }
  return "unknown";
}

namespace detail {

std::atomic<std::uint32_t> sinks{unprobed};

std::uint32_t open(Category category, const char* name, std::int64_t payload, std::int64_t& start_ns) {
  if (sinks.load(std::memory_order_relaxed) & unprobed) nvtx_attached();
  auto wanted = sinks.load(std::memory_order_acquire);
  if (category != Category::phase) wanted &= ~std::uint32_t{listener};
  std::uint32_t opened = 0;
  if (wanted & listener) {
    notify_listener(name);  // first, since it may throw while nothing is open
    open_phases().push_back(name);
    opened |= listener;
  }
  if (wanted & Sink::nvtx) {
    trace::nvtx::push(category, name, payload);
    opened |= Sink::nvtx;
  }
  if (wanted & timeline) {
    buffer();  // numbers the thread now, so that it precedes threads that it starts
    opened |= timeline;
    start_ns = steady_ns();
  }
  return opened;
}

void close(std::uint32_t opened, Category category, const char* name, std::int64_t payload,
           std::int64_t start_ns) noexcept {
  if (opened & timeline) {
    const auto end_ns = steady_ns();
    auto& mine = buffer();
    std::lock_guard lock(mine.mutex);
    try {
      if (mine.entries.size() < max_entries_per_thread)
        mine.entries.push_back(
            {name, category, payload, start_ns + registry().to_realtime_ns.load(), end_ns - start_ns, mine.thread});
      else
        ++mine.dropped;
    } catch (...) {  // out of memory: drop the entry, continue the case
      ++mine.dropped;
    }
  }
  if (opened & Sink::nvtx) trace::nvtx::pop();
  if (opened & listener) {
    auto& names = open_phases();
    if (!names.empty()) names.pop_back();
    try {
      if (!names.empty()) notify_listener(names.back());
    } catch (...) {  // the next message that may throw reports a lost channel
    }
  }
}

}  // namespace detail

bool nvtx_attached() {
  const bool attached = nvtx::attached();
  if (attached) set_sink(detail::nvtx, true);
  set_sink(detail::unprobed, false);
  return attached;
}

void start_timeline() {
  using namespace std::chrono;
  const auto wall = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
  registry().to_realtime_ns = wall - steady_ns();
  set_sink(detail::timeline, true);
}

std::int64_t timeline_now() { return steady_ns() + registry().to_realtime_ns.load(); }

bool timeline_on() { return (detail::sinks.load() & detail::timeline) != 0; }

std::vector<Entry> drain_timeline() {
  auto& all = registry();
  std::lock_guard lock(all.mutex);
  std::vector<Entry> drained;
  for (const auto& each : all.buffers) {
    std::lock_guard inner(each->mutex);
    std::move(each->entries.begin(), each->entries.end(), std::back_inserter(drained));
    if (each->dropped > 0) {
      const auto last = each->entries.empty() ? std::int64_t{0} : each->entries.back().start_ns;
      drained.push_back({"(dropped)", Category::run, each->dropped, last, 0, each->thread});
      each->dropped = 0;
    }
    each->entries.clear();
  }
  // A buffer that only this list references belonged to a thread that has ended.
  std::erase_if(all.buffers, [](const auto& each) { return each.use_count() == 1; });
  // Enclosing spans come first, also if both start in the same nanosecond.
  std::ranges::stable_sort(drained, [](const Entry& a, const Entry& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.duration_ns > b.duration_ns;
  });
  return drained;
}

void on_phase(std::function<void(std::string_view)> listener) {
  auto& all = registry();
  const bool on = static_cast<bool>(listener);
  std::lock_guard lock(all.listener_mutex);
  all.listener = on ? std::make_shared<const std::function<void(std::string_view)>>(std::move(listener)) : nullptr;
  set_sink(detail::listener, on);
}

}  // namespace assay::trace
