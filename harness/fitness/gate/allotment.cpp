#include "harness/fitness/gate/allotment.h"

#include "harness/core/error.h"
#include "harness/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace assay::gate {

namespace {

constexpr std::int64_t max_index = 1023;

std::optional<std::int64_t> index_of(std::string_view word) {
  const bool digits = !word.empty() && word.size() <= 4 && word.find_first_not_of("0123456789") == word.npos;
  return digits ? to_integer(word) : std::nullopt;
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(),
                    [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
}

// The indices of a range, or the word itself; nothing if it is neither an index nor a UUID.
std::optional<std::vector<std::string>> expanded(const std::string& word) {
  const std::size_t dash = word.find('-');
  const auto first = index_of(word.substr(0, dash));
  const auto last = dash == word.npos ? first : index_of(word.substr(dash + 1));
  std::vector<std::string> found;
  if (first && last && *first <= *last && *last <= max_index)
    for (std::int64_t i = *first; i <= *last; ++i) found.push_back(std::to_string(i));
  else if ((word.starts_with("GPU-") || word.starts_with("MIG-")) && word.size() > 4)
    found.push_back(word);
  else
    return std::nullopt;
  return found;
}

// What a word names: GPUs here (none: it is not here), or why that cannot be said.
struct Named {
  std::vector<const GpuHere*> gpus;
  std::string why_not;
};

Named with_uuid(const std::vector<GpuHere>& here, std::string_view prefix) {
  Named named;
  for (const GpuHere& gpu : here)
    if (starts_with(gpu.uuid, prefix)) named.gpus.push_back(&gpu);
  if (named.gpus.empty() && std::ranges::any_of(here, [](const GpuHere& gpu) { return gpu.uuid.empty(); }))
    named.why_not = "the driver does not say the UUID of every GPU here";
  return named;
}

// Old drivers name a slice after its GPU: MIG-GPU-UUID/GI/CI.
Named with_slice(const std::vector<GpuHere>& here, std::string_view word) {
  if (word.starts_with("MIG-GPU-")) return with_uuid(here, word.substr(4, word.find('/') - 4));
  Named named;
  bool all_known = true;
  for (const GpuHere& gpu : here) {
    all_known &= gpu.mig == false || !gpu.slices.empty();
    if (std::ranges::any_of(gpu.slices, [&](const std::string& slice) { return starts_with(slice, word); }))
      named.gpus.push_back(&gpu);
  }
  if (named.gpus.empty() && !all_known) named.why_not = "the driver does not say of which GPU it is a slice";
  return named;
}

// Why indices of `source` may count something else than the GPUs here by PCI address.
std::string index_trouble(const std::vector<GpuHere>& here, const std::string& source, const Variables& environment) {
  if (source == "--gpus") return {};
  if (std::ranges::any_of(here, [](const GpuHere& gpu) { return gpu.mig.value_or(false); }))
    return "with GPUs that are divided into slices (MIG), indices may count those";
  if (source != "CUDA_VISIBLE_DEVICES") return {};
  if (std::ranges::any_of(here, &GpuHere::lost)) return "CUDA does not count GPUs that are lost";
  const auto order = environment.find("CUDA_DEVICE_ORDER");
  if ((order == environment.end() || order->second != "PCI_BUS_ID") &&
      std::ranges::any_of(here, [&](const GpuHere& gpu) { return gpu.name != here.front().name; }))
    return "without CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA counts GPUs of several kinds by their speed";
  return {};
}

Named with_index(const std::vector<GpuHere>& here, std::int64_t index, const std::string& source,
                 const std::string& trouble) {
  if (!trouble.empty()) return {{}, trouble};
  for (const GpuHere& gpu : here)
    if ((gpu.shown || source != "CUDA_VISIBLE_DEVICES") && index-- == 0) return {{&gpu}, {}};
  return {};
}

// How launchers say that a job gets no GPU.
bool means_none(const std::string& word) { return word == "-1" || word == "NoDevFiles" || word == "none"; }

void add_jobs(const Root& root, const std::string& folder, std::set<std::string>& jobs) {
  for (const std::string& name : root.list(folder))
    if (name.starts_with("job_") && index_of(name.substr(4, 1))) jobs.insert(name.substr(4));
}

}  // namespace

Scope Allotment::scope(const std::vector<GpuHere>& here) const {
  Scope scope;
  for (const GpuHere& gpu : here)
    if (std::ranges::none_of(gpus, [&](const GpuHere& one) { return one.device() == gpu.device(); }))
      scope.others.push_back(gpu.device());
  return scope;
}

std::vector<Target> Allotment::targets(const std::vector<GpuHere>& here) const {
  std::vector<Target> found;
  const bool uuids = std::ranges::any_of(here, [](const GpuHere& gpu) { return !gpu.uuid.empty(); });
  for (const GpuHere& gpu : gpus) {
    if (all && !gpu.shown) continue;
    Target target{gpu.device(), gpu.uuid, {}};
    const auto at =
        std::ranges::find_if(here, [&](const GpuHere& one) { return one.device() == gpu.device(); }) - here.begin();
    if (!uuids) target.visible = std::to_string(at);
    if (target.visible.empty()) target.why_not = "the driver does not show it";
    if (all && gpu.clients > 0)
      target.why_not = fmt::format("{} process{} on it, and whether it is this job's is not known", gpu.clients,
                                   gpu.clients == 1 ? " computes" : "es compute");
    std::vector<std::string> its;  // slices
    for (const std::string& word : slices)
      if (std::ranges::any_of(with_slice(here, word).gpus, [&](const GpuHere* one) { return one->pci == gpu.pci; }))
        its.push_back(word);
    if (its.empty() && gpu.mig.value_or(false)) its = gpu.slices;
    for (const std::string& slice : its) found.push_back({target.device + " " + slice, slice, target.why_not});
    if (its.empty()) found.push_back(std::move(target));
  }
  return found;
}

std::vector<std::string> gpu_words(const std::string& place, const std::string& text) {
  std::vector<std::string> found;
  for (const std::string& word : split_commas(text)) {
    const auto words = expanded(word);
    if (!words)
      throw UsageError(fmt::format("{}: {} is neither the index (0, 2-3) nor the UUID (GPU-..., MIG-...) of a GPU",
                                   place, in_quotes(word)));
    found.insert(found.end(), words->begin(), words->end());
  }
  return found;
}

Allotment find_allotment(const std::string& flag, const Variables& environment, const std::vector<GpuHere>& here) {
  Allotment allotment;
  std::string text = flag;
  if (!flag.empty()) {
    allotment.source = "--gpus";
    (void)gpu_words("--gpus", flag);
  }
  // Slurm's names are those of the whole host. In a container only the allotted GPUs are there, and their indices may
  // be others than NVIDIA_VISIBLE_DEVICES names: whatever is there is the job's.
  for (const char* name : {"SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES"}) {
    const auto found = environment.find(name);
    if (!text.empty() || found == environment.end() || trim(found->second).empty()) continue;
    text = found->second;
    allotment.source = name;
  }
  allotment.certain = allotment.source == "--gpus" || allotment.source.starts_with("SLURM");
  if (text.empty()) {
    allotment.gpus = here;
    return allotment;
  }
  allotment.all = false;
  const std::string trouble = index_trouble(here, allotment.source, environment);
  bool first = true;
  for (const std::string& part : split_commas(text)) {
    const std::string name(trim(part));
    if (means_none(name)) {  // CUDA ignores what follows
      allotment.none = first;
      break;
    }
    first = false;
    const auto words = expanded(name);
    if (!words) allotment.unmapped.push_back(in_quotes(name) + ": neither an index nor a UUID");
    for (const std::string& word : words.value_or(std::vector<std::string>())) {
      const auto index = index_of(word);
      const bool slice = word.starts_with("MIG-");
      const Named named = index   ? with_index(here, *index, allotment.source, trouble)
                          : slice ? with_slice(here, word)
                                  : with_uuid(here, word);
      if (!named.why_not.empty())
        allotment.unmapped.push_back(fmt::format("{}: {}", word, named.why_not));
      else if (named.gpus.empty())
        allotment.missing.push_back(word);
      if (slice && !named.gpus.empty() && std::ranges::find(allotment.slices, word) == allotment.slices.end())
        allotment.slices.push_back(word);
      for (const GpuHere* gpu : named.gpus)
        if (std::ranges::none_of(allotment.gpus, [&](const GpuHere& one) { return one.device() == gpu->device(); }))
          allotment.gpus.push_back(*gpu);
    }
  }
  // A name that is not known may be that of any GPU.
  allotment.all = !allotment.unmapped.empty() || (!allotment.certain && !allotment.missing.empty());
  if (allotment.all) allotment.gpus = here;
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
