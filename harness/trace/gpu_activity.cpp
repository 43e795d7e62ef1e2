// Attributes GPU activities to the spans that launched them.
#include "harness/trace/gpu_activity.h"

#include "harness/core/error.h"
#include "harness/core/module.h"

#include <algorithm>
#include <array>
#include <map>

namespace assay::trace {

namespace {

struct Interval {
  std::int64_t start, end;
};

// Sorted and merged.
std::vector<Interval> united(std::vector<Interval> parts) {
  std::ranges::sort(parts, {}, &Interval::start);
  std::vector<Interval> merged;
  for (const Interval& part : parts) {
    if (!merged.empty() && part.start <= merged.back().end)
      merged.back().end = std::max(merged.back().end, part.end);
    else
      merged.push_back(part);
  }
  return merged;
}

std::int64_t length(const std::vector<Interval>& merged) {
  std::int64_t sum = 0;
  for (const Interval& part : merged) sum += part.end - part.start;
  return sum;
}

// The length of the intersection of two merged lists.
std::int64_t common_length(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::int64_t sum = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    sum += std::max<std::int64_t>(0, std::min(a[i].end, b[j].end) - std::max(a[i].start, b[j].start));
    if (a[i].end < b[j].end)
      ++i;
    else
      ++j;
  }
  return sum;
}

// Spans as a tree by time: which encloses which on the launching thread.
class SpanTree {
 public:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  explicit SpanTree(const std::vector<Entry>& spans) : spans_(spans) {
    for (std::size_t i = 0; i < spans.size(); ++i)
      if (spans[i].category != Category::data && spans[i].category != Category::gpu) order_.push_back(i);
    std::ranges::stable_sort(order_, [&](std::size_t a, std::size_t b) {
      return spans[a].start_ns != spans[b].start_ns ? spans[a].start_ns < spans[b].start_ns
                                                    : spans[a].duration_ns > spans[b].duration_ns;
    });
    parent_.assign(spans.size(), none);
    std::vector<std::size_t> open;
    for (const std::size_t i : order_) {
      while (!open.empty() && end(open.back()) <= spans[i].start_ns) open.pop_back();
      if (!open.empty()) parent_[i] = open.back();
      open.push_back(i);
    }
  }

  // The innermost span around a moment; `none` if there is no such span.
  std::size_t innermost(std::int64_t at) const {
    auto next = std::ranges::upper_bound(
        order_, at, [&](std::int64_t moment, std::size_t i) { return moment < spans_[i].start_ns; });
    if (next == order_.begin()) return none;
    std::size_t i = *--next;
    while (i != none && end(i) <= at) i = parent_[i];
    return i;
  }
  std::size_t parent(std::size_t i) const { return parent_[i]; }

 private:
  std::int64_t end(std::size_t i) const { return spans_[i].start_ns + spans_[i].duration_ns; }

  const std::vector<Entry>& spans_;
  std::vector<std::size_t> order_, parent_;
};

}  // namespace

std::unique_ptr<GpuRecorder> make_gpu_recorder(std::string& why_not) {
  try {
    const Module module = Module::load("cuda");
    using Make = GpuRecorder* (*)(std::int64_t(*)(), std::string*);
    return std::unique_ptr<GpuRecorder>(module.function<Make>("assay_make_gpu_recorder")(&timeline_now, &why_not));
  } catch (const Error& error) {
    why_not = error.what();
    return nullptr;
  }
}

std::vector<std::pair<std::string, double>> gpu_time_by_span(const std::vector<Entry>& spans,
                                                             const std::vector<GpuActivity>& activities) {
  struct Work {
    std::vector<Interval> computing, communicating;
  };
  const SpanTree tree(spans);
  std::map<std::size_t, Work> by_span;
  for (const GpuActivity& activity : activities) {
    if (activity.launched_ns == 0) continue;
    const Interval when{activity.start_ns, activity.start_ns + activity.duration_ns};
    for (std::size_t i = tree.innermost(activity.launched_ns); i != SpanTree::none; i = tree.parent(i))
      if (spans[i].category == Category::sample)
        (activity.communication ? by_span[i].communicating : by_span[i].computing).push_back(when);
  }
  struct Sum {
    double busy = 0, idle = 0, overlap = 0;
    bool communicates = false;
  };
  std::map<std::string, Sum> sums;
  std::map<std::string, std::int64_t> openings;
  for (const Entry& span : spans)
    if (span.category == Category::sample) ++openings[span.name];
  for (auto& [index, work] : by_span) {
    std::vector<Interval> all = work.computing;
    all.insert(all.end(), work.communicating.begin(), work.communicating.end());
    all = united(std::move(all));
    Sum& sum = sums[spans[index].name];
    const std::int64_t busy = length(all);
    sum.busy += static_cast<double>(busy);
    sum.idle += static_cast<double>(all.back().end - all.front().start - busy);
    sum.overlap += static_cast<double>(common_length(united(work.computing), united(work.communicating)));
    sum.communicates = sum.communicates || !work.communicating.empty();
  }
  std::vector<std::pair<std::string, double>> seconds;
  for (const auto& [name, sum] : sums) {
    const double scale = 1e-9 / static_cast<double>(openings[name]);
    seconds.emplace_back("gpu:" + name, sum.busy * scale);
    seconds.emplace_back("gpu_idle:" + name, sum.idle * scale);
    if (sum.communicates) seconds.emplace_back("gpu_overlap:" + name, sum.overlap * scale);
  }
  return seconds;
}

std::vector<Entry> gpu_entries(const std::vector<Entry>& spans, const std::vector<GpuActivity>& activities,
                               std::size_t max) {
  std::vector<const GpuActivity*> order;
  order.reserve(activities.size());
  for (const GpuActivity& activity : activities) order.push_back(&activity);
  std::ranges::stable_sort(order, {}, &GpuActivity::start_ns);
  if (order.size() > max) order.resize(max);

  const SpanTree tree(spans);
  std::map<std::uint32_t, std::array<std::int64_t, gpu_lanes>> busy_until;
  std::vector<Entry> entries;
  entries.reserve(order.size());
  for (const GpuActivity* activity : order) {
    const std::size_t span = activity->launched_ns ? tree.innermost(activity->launched_ns) : SpanTree::none;
    std::string name = activity->name;
    if (span != SpanTree::none) name += " [" + spans[span].name + "]";
    constexpr std::uint32_t max_streams = 1 << 20;  // CUPTI's "no stream" is 2^32 - 1
    const std::uint32_t stream = std::min(activity->stream, max_streams);
    auto& lanes = busy_until[stream];
    auto lane = std::ranges::find_if(lanes, [&](std::int64_t end) { return end <= activity->start_ns; });
    if (lane == lanes.end()) lane = std::ranges::min_element(lanes);
    *lane = activity->start_ns + activity->duration_ns;
    entries.push_back({std::move(name), Category::gpu, 0, activity->start_ns, activity->duration_ns,
                       gpu_track(static_cast<int>(stream), static_cast<int>(lane - lanes.begin()))});
  }
  return entries;
}

}  // namespace assay::trace
