#include "workloads/transformer/family.h"

#include "workloads/training/family.h"
#include "workloads/transformer/transformer.h"

namespace assay {

namespace {

std::unique_ptr<nn::Model> load(const char* family, const std::string& model) {
  const training::ModelFile file = training::open_model(family, model);
  return transformer::make_transformer(transformer::read_config(file.json, file.source, file.name));
}

const training::ModelFamily gpt{"transformer",
                                "training of GPT-2-style decoders and BERT-style encoders: tokens/s, or time to a loss",
                                "gpt2-124m", [](const std::string& model) { return load("transformer", model); }};
const training::ModelFamily llama{"llama", "training of Llama-style decoders: tokens/s, or time to a loss",
                                  "llama-160m", [](const std::string& model) { return load("llama", model); }};

}  // namespace

Family transformer_family() { return training::workload_family<gpt>(); }
Family llama_family() { return training::workload_family<llama>(); }

}  // namespace assay
