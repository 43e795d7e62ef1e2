#include "harness/gate/allotment.h"

#include "harness/core/error.h"
#include "harness/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace assay::gate {

namespace {

constexpr std::int64_t max_index = 1023;

std::optional<std::int64_t> index_of(std::string_view word) {
  const bool digits = !word.empty() && word.size() <= 4 && word.find_first_not_of("0123456789") == word.npos;
  return digits ? to_integer(word) : std::nullopt;
}

const GpuHere* find_gpu(const std::vector<GpuHere>& here, const std::string& word) {
  if (const auto index = index_of(word))
    return *index < static_cast<std::int64_t>(here.size()) ? &here[static_cast<std::size_t>(*index)] : nullptr;
  const auto found =
      std::find_if(here.begin(), here.end(), [&](const GpuHere& gpu) { return gpu.uuid.starts_with(word); });
  return found == here.end() ? nullptr : &*found;
}

void add_jobs(const Root& root, const std::string& folder, std::set<std::string>& jobs) {
  for (const std::string& name : root.list(folder))
    if (name.starts_with("job_") && index_of(name.substr(4, 1))) jobs.insert(name.substr(4));
}

}  // namespace

Scope Allotment::scope() const {
  Scope scope{all, {}};
  for (const GpuHere& gpu : gpus) scope.devices.push_back(gpu.pci);
  return scope;
}

std::vector<std::string> gpu_words(const std::string& place, const std::string& text) {
  std::vector<std::string> found;
  for (const std::string& word : split_commas(text)) {
    const std::size_t dash = word.find('-');
    const auto first = index_of(word.substr(0, dash));
    const auto last = dash == word.npos ? first : index_of(word.substr(dash + 1));
    if (first && last && *first <= *last && *last <= max_index) {
      for (std::int64_t i = *first; i <= *last; ++i) found.push_back(std::to_string(i));
    } else if ((word.starts_with("GPU-") || word.starts_with("MIG-")) && word.size() > 4) {
      found.push_back(word);
    } else {
      throw UsageError(
          fmt::format("{}: {} is neither the index (0, 2-3) nor the UUID (GPU-...) of a GPU", place, in_quotes(word)));
    }
  }
  return found;
}

Allotment find_allotment(const std::string& flag, const Variables& environment, const std::vector<GpuHere>& here) {
  Allotment allotment;
  std::string text = flag;
  if (!flag.empty()) allotment.source = "--gpus";
  // Slurm's names are those of the whole host. In a container only the allotted GPUs are there, and their indices may
  // be others than NVIDIA_VISIBLE_DEVICES names: whatever is there is the job's.
  for (const char* name : {"SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES"}) {
    const auto found = environment.find(name);
    if (!text.empty() || found == environment.end() || found->second.empty()) continue;
    text = found->second;
    allotment.source = name;
  }
  allotment.certain = allotment.source == "--gpus" || allotment.source.starts_with("SLURM");
  if (text.empty()) {
    allotment.gpus = here;
    return allotment;
  }
  allotment.all = false;
  std::vector<std::string> wanted;
  try {
    wanted = gpu_words("--gpus", text);
  } catch (const UsageError&) {
    if (!flag.empty()) throw;  // "-1", "NoDevFiles": no GPU
  }
  for (const std::string& word : wanted) {
    const GpuHere* gpu = find_gpu(here, word);
    // A slice of a GPU has a UUID of its own, which only the driver knows.
    if (!gpu && !word.starts_with("MIG-")) allotment.missing.push_back(word);
    const auto same = [&](const GpuHere& one) { return gpu && one.pci == gpu->pci; };
    if (gpu && std::none_of(allotment.gpus.begin(), allotment.gpus.end(), same)) allotment.gpus.push_back(*gpu);
  }
  return allotment;
}

std::vector<std::string> other_jobs(const Root& root, const std::string& own) {
  std::set<std::string> jobs;
  // cgroup v2: system.slice/NODE_slurmstepd.scope/job_N; v1: CONTROLLER/slurm[_NODE]/uid_U/job_N.
  const std::string top = "sys/fs/cgroup";
  for (const std::string& scope : root.list(top + "/system.slice"))
    if (scope.find("slurmstepd.scope") != scope.npos) add_jobs(root, top + "/system.slice/" + scope, jobs);
  for (const char* controller : {"cpuset", "memory", "freezer", "devices", "cpu,cpuacct"})
    for (const std::string& slurm : root.list(fmt::format("{}/{}", top, controller)))
      if (slurm.starts_with("slurm"))
        for (const std::string& user : root.list(fmt::format("{}/{}/{}", top, controller, slurm)))
          add_jobs(root, fmt::format("{}/{}/{}/{}", top, controller, slurm, user), jobs);
  jobs.erase(own);
  return {jobs.begin(), jobs.end()};
}

}  // namespace assay::gate
