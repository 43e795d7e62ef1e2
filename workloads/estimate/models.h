// Models by name or file: what `assay list models` prints of them, and what `assay estimate` plans for.
#pragma once

#include "harness/json/configs.h"
#include "harness/json/fwd.h"
#include "workloads/training/settings.h"
#include "workloads/transformer/config.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace assay::estimate {

struct LoadedModel {
  const training::ModelFamily* family = nullptr;
  std::unique_ptr<nn::Model> model;
  std::optional<transformer::Config> language;  // absent for images

  std::int64_t parameters() const;
};

// The file may be one of ours or a Hugging Face config.json. Throws UsageError, with the place, if it does not describe
// a model, or one that this build lacks something for.
LoadedModel load_model(const std::filesystem::path& file);

// Throws UsageError for a file that does not describe a model, with the place of the error.
Json model_json(const ConfigFile& file);
// The same as a few lines of text.
std::string model_text(const Json& model);

}  // namespace assay::estimate
