#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/kineto/record.h"
#include "harness/watch/text.h"

#include <fmt/format.h>

namespace assay::kineto {
namespace {

constexpr std::size_t max_shown = 5, max_collectives = 3, max_rank_bars = 8;  // `report` shows more

}  // namespace

std::string gpu_bars(const Job& job, const std::string& title) {
  const auto line = [](const std::string& of, const GpuParts& parts) {
    return fmt::format("{:<7} {}\n", of,
                       watch::bar({{"compute", parts.compute},
                                   {"comm", parts.communication},
                                   {"copies", parts.copies},
                                   {"data", parts.data},
                                   {"host", parts.host}},
                                  parts.step()));
  };
  std::string text = line(title, job.mean_gpu_parts());
  if (job.gpu_parts.size() < 2) return text;
  for (std::size_t i = 0; i < job.gpu_parts.size() && i < max_rank_bars; ++i)
    text += line(fmt::format("rank {}", job.gpu_parts[i].rank), job.gpu_parts[i]);
  return text;
}

namespace {

// ": 412 TFLOP/s in bf16, 341 FLOP/B, 42 % of what its peak allows"
std::string work_text(const std::optional<TracedWork>& work) {
  if (!work) return "";
  std::string text = fmt::format(": {}{}, {} FLOP/B", format_quantity(work->rate(), "FLOP/s"),
                                 work->dtype.empty() ? "" : " in " + work->dtype, format_number(work->intensity(), 0));
  if (const auto share = work->of_bound())
    text += fmt::format(", {} of what its {} allows", format_percent(*share), work->bound_by());
  return text;
}

}  // namespace

std::string uses_text(const Job& job) {
  std::string text;
  for (std::size_t i = 0; i < job.uses.size() && i < max_shown; ++i)
    text += fmt::format("{:<9} {:>8} of a step in {} x {}{}\n",
                        i > 0     ? ""
                        : job.gpu ? "kernels"
                                  : "operators",
                        format_seconds(job.uses[i].seconds), format_number(job.uses[i].calls, 1),
                        one_line(job.uses[i].name, 55), work_text(job.uses[i].work));
  for (std::size_t i = 0; i < job.collectives.size() && i < max_collectives; ++i) {
    const TracedCollective& one = job.collectives[i];
    text += fmt::format("{}: {} x {} to transfer, {} for the last rank ({} in {:.0f} %)\n", one_line(one.name, 40),
                        format_number(one.calls, 1), format_seconds(one.transfer), format_seconds(one.skew), one.last,
                        100 * one.last_share);
  }
  return text;
}

namespace {

std::string job_text(const Job& job, const std::string& name, const std::string& run) {
  const watch::JobSteps& steps = job.steps;
  std::string text =
      fmt::format("{} · {} · {} of {} (p95 {})\n", name, plural(job.world, "rank"), plural(steps.count, "step"),
                  format_seconds(steps.summary.median), format_seconds(steps.p95));
  if (steps.step > 0) text += job.gpu ? gpu_bars(job, "step") : watch::bars(steps);
  text += watch::findings_text(job.found, job.sound);
  text += uses_text(job);
  for (const std::string& remark : job.remarks) text += one_line(remark) + "\n";
  return text + fmt::format("assay report {}\n", run);
}

}  // namespace

std::string import_job(const Job& job, const std::string& name, const std::string& out) {
  const std::string called = name.empty() ? "trace" : name;
  write_job(job, record_of(job, called), out);
  return job_text(job, called, out);
}

}  // namespace assay::kineto
