#include "harness/core/text.h"
#include "harness/kineto/job.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::kineto {
namespace {

// Fractions of a step.
double copy_limit() { return watch::warns_from("copy-bound", "exposed_copies_share"); }
double idle_limit() { return watch::warns_from("launch-bound", "gpu_idle_share"); }

double gain_of(double share) { return 1 / std::max(0.01, 1 - share); }

watch::Surroundings surroundings(const Job& job) {
  watch::Surroundings around;
  around.ranks = static_cast<int>(job.ranks.size());
  around.cpus = 1024 * around.ranks;  // not known: no advice is cut to them
  around.cuda = job.gpu;
  around.cpu_times = false;
  return around;
}

}  // namespace

std::vector<watch::Diagnosis> diagnose(const Job& job) {
  std::vector<watch::Diagnosis> found = watch::diagnose(job.steps, surroundings(job));
  const bool itself = std::ranges::all_of(job.ranks, &RankTrace::loads_itself);
  for (watch::Diagnosis& one : found)
    if (one.rule == "data-starved" && !itself)
      one.change = "the loader's workers cannot keep up -> a larger num_workers, or cheaper decoding";
  if (job.gpu && job.steps.step > 0) {
    const GpuParts parts = job.mean_gpu_parts();
    const double copies = parts.copies / parts.step(), host = parts.host / parts.step();
    double pageable = 0;
    for (const RankTrace& rank : job.ranks) pageable = std::max(pageable, rank.pageable_share);
    if (copies >= copy_limit())
      found.push_back({"copy-bound", fmt::format("for {:.0f} % of a step the GPU only copies", 100 * copies),
                       pageable >= 0.5 ? fmt::format("{:.0f} % of it from or to pageable memory -> pin_memory=True and "
                                                     "non_blocking=True",
                                                     100 * pageable)
                                       : "copy the next batch on a stream of its own while this one computes",
                       gain_of(copies)});
    if (host >= idle_limit())
      found.push_back(
          {"launch-bound", fmt::format("for {:.0f} % of a step the GPU is idle: it waits for launches", 100 * host),
           "larger batches, CUDA graphs or torch.compile; no .item() or .cpu() inside the step", gain_of(host)});
    std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.gain > b.gain; });
  }
  return found;
}

std::vector<std::string> not_the_cause(const Job& job) {
  std::vector<std::string> sound = watch::not_the_cause(job.steps, surroundings(job));
  if (!job.gpu || !(job.steps.step > 0)) return sound;
  const GpuParts parts = job.mean_gpu_parts();
  if (parts.copies < copy_limit() * parts.step())
    sound.push_back(fmt::format("copies ({:.1f} %)", 100 * parts.copies / parts.step()));
  if (parts.host < idle_limit() * parts.step())
    sound.push_back(fmt::format("the host ({:.1f} %)", 100 * parts.host / parts.step()));
  return sound;
}

}  // namespace assay::kineto
