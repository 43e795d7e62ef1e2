// Reads the architecture of a Hugging Face config.json.
#pragma once

#include "harness/json/fwd.h"
#include "workloads/architecture/architecture.h"

#include <string>
#include <vector>

namespace assay::architecture {

// Whether this JSON is a Hugging Face config.json, and not a file of configs/models.
bool is_config_json(const Json& json);

// The model that AutoModelForCausalLM makes of the file; for bert and roberta AutoModelForMaskedLM, for vit
// AutoModelForImageClassification. Of a file with a text_config, its language model. Members that are absent have the
// defaults of the transformers library where those do not depend on its version. Throws UsageError with a line
// "FILE: POINTER: WHAT" for each error. Members that may change memory and are not known are named in `notes`.
Architecture read_architecture(const Json& json, const std::string& source, const std::string& name);

// The model types that can be read.
std::vector<std::string> known_types();

}  // namespace assay::architecture
