// Spans: run, case, sample or step, phases inside. Each is an NVTX range in the domain `assay` and,
// while a timeline is collected, an entry that becomes one event of a Chrome trace.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::trace {

enum class Category : std::uint32_t { run = 1, case_ = 2, sample = 3, phase = 4, layer = 5, communication = 6, data = 7 };

// A range on the calling thread, closed by the destructor; must nest. Free of cost (two predictable branches)
// when no timeline is collected and no NVTX tool is attached. `name` must outlive the span.
class Span {
 public:
  Span(Category category, const char* name, std::int64_t payload = 0);
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  const char* name_;
  Category category_;
  bool open_;
  std::int64_t start_ns_;
};

// Collection of the host timeline (--trace).
void start_timeline();
bool timeline_on();

struct Entry {
  std::string name;
  Category category;
  std::int64_t payload;
  std::int64_t start_ns;     // CLOCK_REALTIME, so that ranks lie side by side
  std::int64_t duration_ns;
  int thread;
};
// Takes what was collected since the last call.
std::vector<Entry> take_timeline();

// Told the name of each case-level phase (setup, warm-up, measure, verify) as it opens: the worker passes it to the
// supervisor, which names it when the worker dies.
void on_phase(std::function<void(std::string_view)> listener);

// Writes a Chrome trace (JSON) that Perfetto opens: a process a rank, a track a thread.
struct RankTimeline {
  int rank;
  std::string host;
  std::vector<Entry> entries;
};
void write_chrome_trace(const std::string& path, const std::vector<RankTimeline>& ranks);

}  // namespace assay::trace
