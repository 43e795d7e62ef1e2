// Makes a case family of a model family.
#pragma once

#include "harness/plan/family.h"
#include "workloads/training/settings.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace assay::training {

// A model's configuration file, before its family interprets it.
struct ModelFile {
  std::string name;
  std::string source;  // the file's name in messages
  Json json;
};
// The model named `word` in configs/models, or in a file. Throws UsageError if it is unknown, with the nearest names of
// the family, or belongs to another family.
ModelFile open_model(std::string_view family, const std::string& word);
// Throws UsageError if `word` names a model of another family than `family`.
void check_family(std::string_view family, std::string_view own, const std::string& word);
// The name of a model: its file's name, or for a config.json its folder's.
std::string model_name(const std::filesystem::path& file);

// Why a plan does not fit this machine's memory, on each of the world's ranks; nothing if it does, or for a GPU, which
// only the worker sees.
std::optional<std::string> why_too_large(const nn::MemoryPlan& memory, const World& world);
// How long that many FLOPs of each rank take at a modest rate.
double cautious_seconds(double flops, const World& world);
// Replaces "recipe" by these counts.
void set_counts(const Settings& settings, Params& params);

// Replaces "recipe" by the recipe's counts. Leaves values that do not go together to conflict().
void complete(const ModelFamily& family, Params& params);
Estimate estimate(const ModelFamily& family, const Params& params, const World& world);
// Variables of the processes that train: those that fix what libraries choose, with deterministic=true.
std::map<std::string, std::string> environment(const Params& params);
// Why these values do not go together, or do not fit this machine (with the planned bytes by term).
std::optional<std::string> conflict(const ModelFamily& family, const Params& params, const World& world);
std::unique_ptr<Case> make_case(const ModelFamily& family, const Params& params);

// A Family has plain function pointers, so the model family is a template argument.
template <const ModelFamily& family>
Family workload_family() {
  Family made;
  made.name = family.name;
  made.summary = family.summary;
  made.workload = true;
  made.faults = {Fault::wrong_sum, Fault::bit_flip, Fault::slow_link, Fault::slow_loader, Fault::stall};
  made.params = training_schema(family);
  made.estimate = [](const Params& params, const World& world) { return estimate(family, params, world); };
  made.make = [](const Params& params) { return make_case(family, params); };
  made.environment = environment;
  made.devices = {DeviceKind::cpu, DeviceKind::cuda};
  made.complete = [](Params& params) { complete(family, params); };
  made.conflict = [](const Params& params, const World& world) { return conflict(family, params, world); };
  return made;
}

}  // namespace assay::training
