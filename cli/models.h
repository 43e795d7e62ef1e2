// What `assay list models` tells of a model: its size, its cost, and the memory that a step is planned to take.
#pragma once

#include "cli/configs.h"
#include "harness/core/json_fwd.h"

#include <cstdint>
#include <optional>
#include <string>

namespace assay::cli {

// What memory is planned for; what is left out takes the model's own default.
struct PlannedStep {
  std::optional<std::int64_t> micro_batch;
  std::optional<std::int64_t> seq;
  std::string precision = "f32";
  std::string checkpointing = "none";
  std::int64_t accumulate = 1;
};

// Throws UsageError for a file that describes no model (with the place of what is wrong) and for steps that none has.
Json model_json(const ConfigFile& file, const PlannedStep& step);
// The same for people, a few lines.
std::string model_text(const Json& model);

}  // namespace assay::cli
