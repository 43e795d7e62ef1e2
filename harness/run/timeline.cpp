#include "harness/run/timeline.h"
#include "harness/core/streams.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <utility>

namespace assay {

namespace {

constexpr std::size_t entries_per_message = 5000;
constexpr std::size_t entries_per_case = 50000;

}  // namespace

Timeline::Timeline(WorkerLink& link, DeviceKind device) : link_(link) {
  if (!std::getenv("ASSAY_TRACE")) return;
  trace::start_timeline();
  if (device == DeviceKind::cuda) gpu_ = trace::make_gpu_recorder(why_no_gpu_);
}

void Timeline::send_case(Record& record) {
  if (!trace::timeline_on()) return;
  std::vector<trace::Entry> entries = trace::drain_timeline();
  if (gpu_) {
    const std::vector<trace::GpuActivity> activities = gpu_->drain();
    const auto seconds = trace::gpu_time_by_span(entries, activities);
    record.spans.insert(record.spans.end(), seconds.begin(), seconds.end());
    if (const std::int64_t lost = gpu_->dropped())
      record.flags.push_back(fmt::format("gpu trace: {} activities were lost", lost));
    std::vector<trace::Entry> added = trace::gpu_entries(entries, activities, entries_per_case);
    entries.insert(entries.end(), std::make_move_iterator(added.begin()), std::make_move_iterator(added.end()));
    // Sorted by time, so that a long case is cut at its end, on host and GPU alike.
    std::stable_sort(entries.begin(), entries.end(),
                     [](const trace::Entry& a, const trace::Entry& b) { return a.start_ns < b.start_ns; });
  } else if (!why_no_gpu_.empty()) {
    record.labels["gpu_trace"] = "none: " + why_no_gpu_;
  }
  send(std::move(entries));
}

void Timeline::send_rest() {
  if (trace::timeline_on()) send(trace::drain_timeline());
}

void Timeline::send(std::vector<trace::Entry> entries) {
  if (entries.size() > entries_per_case) {
    say("assay worker: trace: {} of {} spans of this case are dropped\n", entries.size() - entries_per_case,
        entries.size());
    entries.resize(entries_per_case);
  }
  const std::span all(entries);
  for (std::size_t i = 0; i < all.size(); i += entries_per_message) {
    const auto some = all.subspan(i, std::min(entries_per_message, all.size() - i));
    link_.send(message::Timeline{{some.begin(), some.end()}});
  }
}

}  // namespace assay
