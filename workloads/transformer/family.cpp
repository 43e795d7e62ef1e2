#include "workloads/transformer/family.h"

#include "workloads/training/family.h"
#include "workloads/transformer/transformer.h"

namespace assay {

namespace {

std::unique_ptr<nn::Model> load(const char* family, const std::string& model) {
  const training::ModelFile file = training::open_model(family, model);
  const transformer::Config config = transformer::read_config(file.json, file.source, file.name);
  // A file need not name its family.
  training::check_family(family, config.family, model);
  return transformer::make_transformer(config);
}

}  // namespace

const training::ModelFamily transformer_models{
    "transformer", "training of GPT-2-style decoders and BERT-style encoders: tokens/s, or time to a loss", "gpt2-124m",
    [](const std::string& model, std::int64_t) { return load("transformer", model); }};
const training::ModelFamily llama_models{"llama", "training of Llama-style decoders: tokens/s, or time to a loss",
                                         "llama-160m",
                                         [](const std::string& model, std::int64_t) { return load("llama", model); }};

Family transformer_family() { return training::workload_family<transformer_models>(); }
Family llama_family() { return training::workload_family<llama_models>(); }

}  // namespace assay
