// What `assay list models` prints about a model: its size, its cost, and the planned memory of a step.
#pragma once

#include "cli/configs.h"
#include "harness/json/fwd.h"

#include <cstdint>
#include <optional>
#include <string>

namespace assay::cli {

// The step whose memory is planned; defaults are the model's.
struct PlannedStep {
  std::optional<std::int64_t> micro_batch;
  std::optional<std::int64_t> seq;
  std::string precision = "f32";
  std::string checkpointing = "none";
  std::int64_t accumulate = 1;
};

// Throws UsageError for a file that does not describe a model, with the place of the error, and for impossible steps.
Json model_json(const ConfigFile& file, const PlannedStep& step);
// The same as a few lines of text.
std::string model_text(const Json& model);

}  // namespace assay::cli
