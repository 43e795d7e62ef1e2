// Chrome trace JSON ("Trace Event Format"): complete events, one process per rank, one track per thread.
#include "harness/core/files.h"
#include "harness/trace/trace.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <set>

namespace assay::trace {
namespace {

// A quoted JSON string; invalid UTF-8 becomes U+FFFD.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Microseconds with nanoseconds as decimals; a double would lose precision.
std::string microseconds(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

std::string track_name(int thread) {
  if (const int track = thread - first_gpu_track; track >= 0) {
    const auto name = fmt::format("GPU stream {}", track / gpu_lanes);
    return track % gpu_lanes == 0 ? name : fmt::format("{} ({})", name, track % gpu_lanes + 1);
  }
  return thread == 0 ? "main" : fmt::format("thread {}", thread);
}

class Writer {
 public:
  explicit Writer(const std::string& path) : file_(path) {}
  void event(const std::string& text) {
    put(first_ ? "\n" : ",\n");
    put(text);
    first_ = false;
  }
  void put(std::string_view text) { file_.write(text); }
  void close() { file_.finish(); }

 private:
  NewFile file_;
  bool first_ = true;
};

// Sorts by start, enclosing spans first: a run's span arrives after those of its cases.
std::vector<const Entry*> in_order(const std::vector<Entry>& entries) {
  std::vector<const Entry*> order;
  order.reserve(entries.size());
  for (const Entry& entry : entries) order.push_back(&entry);
  std::ranges::stable_sort(order, [](const Entry* a, const Entry* b) {
    return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->duration_ns > b->duration_ns;
  });
  return order;
}

}  // namespace

void write_chrome_trace(const std::string& path, const std::vector<RankTimeline>& ranks) {
  auto start = std::numeric_limits<std::int64_t>::max();
  for (const auto& rank : ranks)
    for (const auto& entry : rank.entries) start = std::min(start, entry.start_ns);
  if (start == std::numeric_limits<std::int64_t>::max()) start = 0;

  Writer out(path);
  out.put(fmt::format("{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"start_ns\":\"{}\"}},\"traceEvents\":[", start));
  for (const auto& rank : ranks) {
    out.event(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":{}}}}})", rank.rank,
                          quoted(fmt::format("rank {} @{}", rank.rank, rank.host))));
    out.event(fmt::format(R"({{"ph":"M","name":"process_sort_index","pid":{0},"tid":0,"args":{{"sort_index":{0}}}}})",
                          rank.rank));
    std::set<int> threads;
    for (const auto& entry : rank.entries) threads.insert(entry.thread);
    for (const int thread : threads)
      out.event(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})", rank.rank,
                            thread + 1, track_name(thread)));
    for (const Entry* entry : in_order(rank.entries))
      out.event(
          fmt::format(R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"payload":{}}}}})",
                      quoted(entry->name), name_of(entry->category), rank.rank, entry->thread + 1,
                      microseconds(entry->start_ns - start),
                      microseconds(std::max<std::int64_t>(entry->duration_ns, 0)), entry->payload));
  }
  out.put("\n]}\n");
  out.close();
}

}  // namespace assay::trace
