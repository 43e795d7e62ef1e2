// The families `transformer` (GPT-2- and BERT-style) and `llama`: training of language models.
#pragma once

#include "harness/plan/family.h"
#include "workloads/training/settings.h"

namespace assay {

extern const training::ModelFamily transformer_models, llama_models;

Family transformer_family();
Family llama_family();

}  // namespace assay
