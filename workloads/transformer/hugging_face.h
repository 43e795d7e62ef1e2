// Models as Hugging Face's transformers describes them: a repository's config.json.
#pragma once

#include "workloads/transformer/config.h"

namespace assay {
class Cursor;
}

namespace assay::transformer {

// Whether this JSON is a Hugging Face config.json, and not a file of configs/models.
bool is_hugging_face(const Json& json);

// Reads llama, mistral, qwen2, gpt2 or bert: the model that AutoModelForCausalLM, or for bert AutoModelForMaskedLM,
// makes of the file. Members that are absent have the defaults of the transformers library where it has any that do not
// depend on its version. Adds a problem for each member that is missing or that this build cannot train. Dropout is
// ignored.
void read_hugging_face(const Cursor& cursor, Config& config);

}  // namespace assay::transformer
