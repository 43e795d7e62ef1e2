#include "workloads/training/family.h"

#include "harness/core/configs.h"
#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/device/cpu/limits.h"
#include "harness/json/json.h"
#include "workloads/data/language.h"
#include "workloads/nn/step_plan.h"
#include "workloads/ops/algorithm_cache.h"
#include "workloads/training/case_files.h"
#include "workloads/training/cases.h"

#include <algorithm>

namespace assay::training {

namespace {

// The family named in a model's JSON; may be empty.
std::string family_of(const Json& json) {
  if (!json.is_object() || !json.contains("family") || !json["family"].is_string()) return "";
  return json["family"].get<std::string>();
}

// This is known about a case before it runs.
struct Planned {
  std::string problem;  // empty: none
  nn::MemoryPlan memory;
  double flops = 0;  // per step and rank
  double items = 0;
  double quality_flops = 0;  // of all runs, if each uses all its samples
};

Planned plan_case(const ModelFamily& family, const Params& params, const World& world) {
  Planned planned;
  try {
    const Settings settings = settings_from(family, params, world.ranks);
    // Open files here, so that problems with them are found while planning.
    if (settings.path != generated_path || settings.quality) (void)open_data(settings);
    if (const auto problem = problem_of_from(settings)) throw UsageError(*problem);
    planned.memory = nn::plan_memory(*settings.model, settings.step_options(), {.kind = world.device});
    const double samples = static_cast<double>(settings.micro_batch * settings.accumulate);
    const double cost = settings.model->cost({1, settings.seq}).training;
    planned.flops = samples * cost;
    planned.items = samples * static_cast<double>(settings.items_per_sample());
    if (settings.quality)
      planned.quality_flops = cost * static_cast<double>(settings.recipe.quality->max_samples) *
                              static_cast<double>(settings.runs) / world.ranks;
  } catch (const UsageError& error) {
    planned.problem = error.what();
  }
  return planned;
}

// Planning asks several times about each case: for a conflict and an estimate.
const Planned& planned_case(const ModelFamily& family, const Params& params, const World& world) {
  static std::mutex mutex;
  static std::map<std::string, Planned> known;
  const std::lock_guard guard(mutex);
  const auto [found, fresh] =
      known.try_emplace(fmt::format("{}\n{}\n{}", params.key(family.name), name_of(world.device), world.ranks));
  if (fresh) found->second = plan_case(family, params, world);
  return found->second;
}

}  // namespace

ModelFile open_model(std::string_view family, const std::string& word) {
  const std::vector<std::string> all = config_names("models");
  if (!is_config_path(word) && std::ranges::find(all, word) == all.end()) {
    std::vector<std::string> names;
    for (const std::string& name : all)
      if (family_of(read_json(configs_dir() / "models" / (name + ".json"))) == family) names.push_back(name);
    throw UsageError(fmt::format("unknown model {}{}", in_quotes(word), suggestion(word, names)));
  }
  const std::filesystem::path path = find_config("models", "model", word);
  ModelFile file{model_name(path), path.string(), read_json(path)};
  if (const std::string own = family_of(file.json); !own.empty()) check_family(family, own, word);
  return file;
}

void check_family(std::string_view family, std::string_view own, const std::string& word) {
  if (own != family)
    throw UsageError(fmt::format("model {} is of the family {}, not {}: --set {}.model={}", in_quotes(word),
                                 in_quotes(own), family, own, word));
}

std::string model_name(const std::filesystem::path& file) {
  if (file.filename() != "config.json") return file.stem().string();
  std::error_code none;
  const std::string folder = std::filesystem::absolute(file, none).lexically_normal().parent_path().filename().string();
  return folder.empty() ? "config" : folder;
}

void set_counts(const Settings& settings, Params& params) {
  params.set("micro_batch", settings.micro_batch);
  params.set("accumulate", settings.accumulate);
  params.set("seq", settings.seq > 0 ? ParamValue(settings.seq) : ParamValue(std::string(no_seq)));
}

void complete(const ModelFamily& family, Params& params) {
  try {
    set_counts(settings_from(family, params, 1), params);
  } catch (const UsageError&) {
    return;
  }
}

double cautious_seconds(double flops, const World& world) {
  constexpr double flops_per_second = 2e10, gpu_flops_per_second = 1e13;  // per core, per GPU
  const double cores = std::max(1.0, static_cast<double>(world.cpus) * world.nodes / world.ranks);
  return flops / (world.device == DeviceKind::cpu ? flops_per_second * cores : gpu_flops_per_second);
}

Estimate estimate(const ModelFamily& family, const Params& params, const World& world) {
  const Planned& planned = planned_case(family, params, world);
  Estimate estimate;
  estimate.memory_bytes = static_cast<double>(planned.memory.total());
  estimate.flops = planned.flops;
  estimate.items = planned.items;
  // Ten steps plus those of the checks, or all runs of a quality case.
  estimate.seconds = cautious_seconds(std::max(20 * planned.flops, planned.quality_flops), world);
  return estimate;
}

std::map<std::string, std::string> environment(const Params& params) {
  if (!params.has("deterministic") || !params.flag("deterministic")) return {};
  return {{ops::kernels_variable, ops::kernels_by_heuristics},
          {"NCCL_ALGO", "Ring"},
          {"NCCL_PROTO", "Simple"},
          {"NCCL_NVLS_ENABLE", "0"}};
}

std::optional<std::string> conflict(const ModelFamily& family, const Params& params, const World& world) {
  const Planned& planned = planned_case(family, params, world);
  return planned.problem.empty() ? why_too_large(planned.memory, world) : planned.problem;
}

std::optional<std::string> why_too_large(const nn::MemoryPlan& memory, const World& world) {
  if (world.device != DeviceKind::cpu) return std::nullopt;  // the planner does not see the GPU; the worker checks
  const std::uint64_t usable = cpu::memory_limits().usable();
  const int here = (world.ranks + world.nodes - 1) / world.nodes;  // ranks of one host
  const double needed = static_cast<double>(memory.total()) * here;
  if (usable > 0 && needed > static_cast<double>(usable))
    return fmt::format("does not fit into the {} of this machine: {}{}", format_bytes(static_cast<double>(usable)),
                       memory.text(), here > 1 ? fmt::format(", on each of {} ranks", here) : "");
  return std::nullopt;
}

std::unique_ptr<Case> make_case(const ModelFamily& family, const Params& params) {
  return is_quality(params) ? make_quality_case(family, params) : make_throughput_case(family, params);
}

}  // namespace assay::training
