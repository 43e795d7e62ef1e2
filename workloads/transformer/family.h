// The families `transformer` (GPT-2- and BERT-style) and `llama`: training of language models.
#pragma once

#include "harness/plan/family.h"

namespace assay {

Family transformer_family();
Family llama_family();

}  // namespace assay
