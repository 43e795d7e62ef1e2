#include "harness/kineto/window.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/kineto/gzip.h"
#include "harness/kineto/job.h"
#include "harness/kineto/reader.h"
#include "harness/kineto/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace assay::kineto {
namespace {

// Judged by watch itself, of all steps and without a profiler's cost.
constexpr std::array<std::string_view, 4> of_all_steps = {"data-starved", "imbalance", "comm-exposed", "stalls"};

std::vector<RankTrace> read_all(const std::vector<watch::TraceFile>& files, std::vector<std::string>& remarks) {
  std::vector<RankTrace> traces;
  for (const watch::TraceFile& file : files) {
    const std::string name = fmt::format("the trace of rank {}", file.rank);
    try {
      RankTrace trace = read_trace(parts_of(file.path), name);
      trace.file = name, trace.rank = file.rank;
      if (trace.host.empty()) trace.host = file.host;
      traces.push_back(std::move(trace));
    } catch (const std::exception& error) {
      const std::string why = error.what();
      remarks.push_back(fmt::format("Not seen: {}", why.starts_with(name) ? why : name + ": " + why));
    }
  }
  return traces;
}

// A profiler makes the host slower, not the kernels: what its steps take longer than others is the host's.
void without_profiler(Job& job, double step) {
  for (GpuParts& rank : job.gpu_parts) rank.host = std::max(0.0, rank.host - std::max(0.0, rank.step() - step));
}

watch::Window window_of(const Job& given, const watch::JobSteps& steps, bool cuda) {
  watch::Window window;
  Job job = given;
  const auto& traced = job.ranks.front().steps;
  window.steps = fmt::format("{} to {}", traced.front().number, traced.back().number);
  window.text = fmt::format("steps {}, recorded by torch.profiler, took {:.2f} times as long as others\n", window.steps,
                            job.steps.step / steps.summary.median);
  if (job.gpu) {
    without_profiler(job, steps.summary.median);
    for (const watch::Diagnosis& one : diagnose(job))
      if (std::ranges::find(of_all_steps, one.rule) == of_all_steps.end()) window.found.push_back(one);
    window.text += gpu_bars(job, "GPU");
    add_gpu_spans("window ", job.mean_gpu_parts(), window.spans);
    if (job.gpu_parts.size() > 1)
      for (const GpuParts& rank : job.gpu_parts)
        add_gpu_spans(fmt::format("window rank {} ", rank.rank), rank, window.spans);
  } else if (cuda) {
    job.remarks.emplace_back("Not seen: kernels: the traces have none, as if the profiler had no access to the GPU.");
  }
  window.text += uses_text(job);
  window.trace = trace_of(job);
  window.remarks = job.remarks;
  return window;
}

watch::Window read(const std::vector<watch::TraceFile>& files, const watch::JobSteps& steps, bool cuda) {
  std::vector<std::string> remarks;
  watch::Window window;
  try {
    if (std::vector<RankTrace> traces = read_all(files, remarks); !traces.empty())
      window = window_of(job_of(std::move(traces)), steps, cuda);
  } catch (const std::exception& error) {
    remarks.push_back(fmt::format("Not seen: recorded steps: {}", error.what()));
  }
  window.remarks.insert(window.remarks.begin(), remarks.begin(), remarks.end());
  for (std::string& remark : window.remarks) remark = one_line(remark, 300);
  return window;
}

}  // namespace

watch::TraceReader trace_reader() { return {.read = read, .keep = compress}; }

}  // namespace assay::kineto
