#include "harness/watch/window.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/watch/record.h"
#include "harness/watch/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::watch {
namespace {

constexpr std::int64_t enough_steps = 15;  // hook/assay_window.py: BEGIN, one to warm up, STEPS, and the job's first

std::string why_missing(const Recording& recording, std::size_t steps) {
  if (!recording.text.empty()) return one_line(recording.text, 300);
  const auto made = static_cast<std::int64_t>(steps) + 1;  // the hook is there from the end of the first one on
  if (made < enough_steps)
    return fmt::format("it made {}, and the last of {} ends it", plural(made, "step"), enough_steps);
  return recording.state == Recording::State::runs ? "the job ended while they were recorded" : "its hook wrote none";
}

}  // namespace

Traces traces_of(const std::vector<std::unique_ptr<Rank>>& ranks, const std::filesystem::path& folder) {
  Traces traces;
  for (const auto& rank : ranks) {
    if (rank->info().absent.contains("window")) continue;  // which says why
    const Recording recording = rank->recording();
    const std::filesystem::path name = recording.text;
    if (recording.state == Recording::State::written && name == name.filename())
      traces.files.push_back({rank->info().rank, "", folder / name});
    else
      traces.missing[rank->info().rank] = why_missing(recording, rank->steps().size());
    traces.stood_still = std::max(traces.stood_still, recording.seconds);
  }
  std::ranges::sort(traces.files, {}, &TraceFile::rank);
  return traces;
}

std::vector<std::string> Traces::remarks() const {
  std::map<std::string, std::vector<std::string>> ranks;
  for (const auto& [rank, why] : missing) ranks[why].push_back(std::to_string(rank));
  std::vector<std::string> lines;
  for (const auto& [why, of] : ranks)
    lines.push_back(files.empty() && ranks.size() == 1
                        ? fmt::format("No steps were recorded: {}.", why)
                        : fmt::format("No trace of rank {}: {}.", first_few(of, 8), why));
  return lines;
}

void add_window(const TraceReader& reader, const std::vector<TraceFile>& files, bool cuda, Seen& seen) {
  if (!reader.read || files.empty()) return;
  seen.window = reader.read(files, *seen.steps, cuda);
  const auto judged = [&](const std::string& rule) {
    return std::ranges::any_of(seen.found, [&](const Diagnosis& one) { return one.rule == rule; });
  };
  for (const Diagnosis& one : seen.window->found) {
    // That the GPU waits for its host: NVML and the host's calls say so of all steps, and which calls.
    if (judged(one.rule) || (one.rule == "launch-bound" && judged("host-sync"))) continue;
    seen.found.push_back(one);
  }
  std::ranges::stable_sort(seen.found, [](const Diagnosis& a, const Diagnosis& b) { return a.gain > b.gain; });
}

void show_window(const Seen& seen, double stood_still, Shown& shown) {
  if (seen.window) {
    shown.traced = seen.window->text;
    for (const std::string& remark : seen.window->remarks) shown.remarks.push_back(remark);
  }
  if (seen.steps && seen.steps->recorded > 0)
    shown.remarks.push_back(
        fmt::format("{} left out of all other figures: they were recorded, or waited for the profiler{}",
                    plural(seen.steps->recorded, "step"),
                    stood_still > 0 ? fmt::format(" ({})", format_seconds(stood_still)) : ""));
}

}  // namespace assay::watch
