// The families `transformer` (GPT-2- and BERT-style) and `llama`: training of language models; and `slice`: the step of
// one, added up from slices of it.
#pragma once

#include "harness/plan/family.h"
#include "workloads/training/settings.h"

namespace assay {

extern const training::ModelFamily transformer_models, llama_models;

Family transformer_family();
Family llama_family();
Family slice_family();

}  // namespace assay
