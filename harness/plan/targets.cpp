// Targets of the command line: plans, families, files, models.
#include "harness/plan/targets.h"

#include "harness/core/configs.h"
#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {

namespace fs = std::filesystem;

namespace {

// Names of the files in a folder of the configs.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& file : json_files(folder)) names.push_back(file.stem().string());
  return names;
}

// A plan for one kind of device does not run on another, where its cases may take hours.
PlanSource on_device(PlanSource source, const fs::path& configs, DeviceKind device) {
  if (!source.device || *source.device == device) return source;
  const std::string without = source.name.starts_with("gpu-") ? source.name.substr(4) : "";
  const std::vector<std::string> names = configs.empty() ? std::vector<std::string>() : names_in(configs / "plans");
  const bool has = std::ranges::find(names, without) != names.end();
  throw UsageError(fmt::format(
      "the plan {} is for {}, and this run is on {}: {}", in_quotes(source.name),
      *source.device == DeviceKind::cuda ? "GPUs" : "CPUs", device == DeviceKind::cpu ? "a CPU" : "a GPU",
      has && device == DeviceKind::cpu ? fmt::format("assay run {}", without)
                                       : fmt::format("run it where --device {} is possible", name_of(*source.device))));
}

// Sets a parameter to one value; nothing if there is no such parameter.
void set_value(PlanEntry& entry, const std::string& name, const ParamValue& value) {
  for (auto& [spec, list] : entry.values)
    if (spec->name == name) list = ValueList{{value}, {}};
}

// A model of configs/models, whole; absent if there is none of that name.
std::optional<PlanSource> model_source(const std::string& name, const fs::path& configs,
                                       std::span<const Family> families, DeviceKind device) {
  const fs::path file = configs / "models" / (name + ".json");
  std::error_code none;
  if (configs.empty() || name.empty() || !fs::exists(file, none)) return std::nullopt;
  const Json json = read_json(file);
  const std::string word = json.is_object() && json.contains("family") && json["family"].is_string()
                               ? json["family"].get<std::string>()
                               : "";
  const Family* family = find_family(families, word);
  if (!family)
    throw UsageError(fmt::format("{}: its family {} cannot be run{}", file.string(), in_quotes(word),
                                 suggestion(word, family_names(families))));
  PlanSource source = bare_family(*family, device);
  source.name = name;
  source.entries.front().model = name;
  set_value(source.entries.front(), "model", name);
  return source;
}

// The first case of an entry, as far as memory depends on it.
Params first_case(const PlanEntry& entry, DeviceKind device) {
  Params params;
  for (const auto& [spec, list] : entry.values)
    if (const auto values = list.values(); spec->has(device) && !values.empty()) params.set(spec->name, values.front());
  if (entry.family->complete) entry.family->complete(params);
  return params;
}

}  // namespace

World world_of(int ranks, DeviceKind device, const PlanLimits& limits) {
  World world{.ranks = ranks, .cpus = limits.cpus, .device = device};
  if (limits.ranks_per_host && ranks > 1) {
    const int local = std::max(1, limits.ranks_per_host(ranks));
    world.nodes = (ranks + local - 1) / local;
  }
  return world;
}

double memory_needed(const Estimate& estimate, int ranks, const PlanLimits& limits) {
  const bool divided = limits.ranks_per_host && ranks > 1;
  return estimate.memory_bytes * (divided ? limits.ranks_per_host(ranks) : ranks);
}

std::string choose_whole_or_slices(PlanEntry& entry, std::span<const Family> families, DeviceKind device,
                                   const PlanLimits& limits) {
  const bool gpu = device != DeviceKind::cpu;
  const std::uint64_t memory = gpu ? limits.gpu_memory_bytes : limits.memory_bytes;
  const char* where = gpu ? "the GPU" : "this machine";
  if (memory == 0) return fmt::format("{}: whole, as the memory of {} is unknown", entry.model, where);
  const int ranks = entry.ranks.front();
  const World world = world_of(ranks, device, limits);
  const auto needed_by = [&](const PlanEntry& one) {
    const Estimate estimate = one.family->estimate(first_case(one, device), world);
    return gpu ? estimate.memory_bytes : memory_needed(estimate, ranks, limits);
  };
  const double whole = needed_by(entry);
  const std::string has = format_bytes(static_cast<double>(memory));
  const std::string sizes = fmt::format("the whole needs {} and {} has {}", format_bytes(whole), where, has);
  if (whole <= static_cast<double>(memory)) return fmt::format("{}: whole, as {}", entry.model, sizes);
  const auto slicer = std::ranges::find_if(families, &Family::adds_up_slices);
  if (slicer == families.end()) return fmt::format("{}: whole, though {}", entry.model, sizes);
  PlanEntry slices = bare_family(*slicer, device).entries.front();
  slices.source = entry.source, slices.model = entry.model, slices.ranks = entry.ranks, slices.seed = entry.seed;
  slices.protocol = entry.protocol, slices.timeout_seconds = entry.timeout_seconds;
  for (auto& [spec, list] : slices.values)
    for (const auto& [given, values] : entry.values)
      if (given->name == spec->name) list = values;
  const auto conflict = slicer->conflict ? slicer->conflict(first_case(slices, device), world) : std::nullopt;
  if (conflict || needed_by(slices) > static_cast<double>(memory))
    return fmt::format("{}: whole, though {}; in slices: {}", entry.model, sizes,
                       conflict.value_or("they do not fit either"));
  std::string text = fmt::format("{}: in slices (family {}), which need {}, as {}", entry.model, slicer->name,
                                 format_bytes(needed_by(slices)), sizes);
  entry = std::move(slices);
  return text;
}

PlanSource read_target(const std::string& target, const fs::path& configs, std::span<const Family> families,
                       DeviceKind device) {
  if (target.find('/') != std::string::npos || target.ends_with(".json"))
    return on_device(read_plan_file(target, families, device), configs, device);
  std::vector<std::string> names = configs.empty() ? std::vector<std::string>() : names_in(configs / "plans");
  if (std::ranges::find(names, target) != names.end())
    return on_device(read_plan_file(configs / "plans" / (target + ".json"), families, device), configs, device);
  if (const Family* family = find_family(families, target)) return bare_family(*family, device);
  std::error_code none;
  if (!target.empty() && fs::exists(target, none))
    return on_device(read_plan_file(target, families, device), configs, device);
  if (auto whole = model_source(target, configs, families, device)) return *std::move(whole);
  std::ranges::move(family_names(families), std::back_inserter(names));
  if (!configs.empty()) std::ranges::move(names_in(configs / "models"), std::back_inserter(names));
  throw UsageError(fmt::format("{} is neither a plan, a family, a model nor a file{}", in_quotes(target),
                               suggestion(target, names)));
}

}  // namespace assay
