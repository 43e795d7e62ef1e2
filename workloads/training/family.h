// A family of models as a family of cases.
#pragma once

#include "harness/plan/family.h"
#include "workloads/training/settings.h"

#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace assay::training {

// A model's configuration as read, before its family makes sense of it.
struct ModelFile {
  std::string name;
  std::string source;  // the file, as messages call it
  Json json;
};
// The model `word` names, of configs/models or any file. Throws UsageError with the nearest names of that family where
// it is unknown, and where it is of another family.
ModelFile open_model(std::string_view family, const std::string& word);

// Puts the recipe's counts in the place of "recipe". Where the values do not go together it leaves them to conflict().
void complete(const ModelFamily& family, Params& params);
Estimate estimate(const ModelFamily& family, const Params& params, const World& world);
// Why these values do not go together, or do not fit this machine: planned bytes by term.
std::optional<std::string> conflict(const ModelFamily& family, const Params& params, const World& world);
std::unique_ptr<Case> make_case(const ModelFamily& family, const Params& params);

// A family's functions are plain pointers, so that what they are about is an argument of the template.
template <const ModelFamily& family>
Family workload_family() {
  Family made;
  made.name = family.name;
  made.summary = family.summary;
  made.workload = true;
  made.faults = {Fault::wrong_sum, Fault::bit_flip, Fault::slow_link};
  made.params = training_schema(family);
  made.estimate = [](const Params& params, const World& world) { return estimate(family, params, world); };
  made.make = [](const Params& params) { return make_case(family, params); };
  made.devices = {DeviceKind::cpu, DeviceKind::cuda};
  made.complete = [](Params& params) { complete(family, params); };
  made.conflict = [](const Params& params, const World& world) { return conflict(family, params, world); };
  return made;
}

}  // namespace assay::training
