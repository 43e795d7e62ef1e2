// How each kind of architecture is read; read.cpp chooses.
#pragma once

#include "workloads/architecture/architecture.h"
#include "workloads/architecture/members.h"

namespace assay::architecture {

// Parts that several have. `norm`: vectors of a norm's width.
Weight vector_of(std::string name, std::int64_t size, Part part = Part::norm);
Weight matrix(std::string name, Part part, Split split, std::int64_t in, std::int64_t out, bool bias = false);
void add_norm(std::vector<Weight>& to, const Architecture& model, const std::string& name, std::int64_t width);

// Embedding, head and final norm of a language model without learned positions; `tied` by tie_word_embeddings.
void read_vocabulary(Members& members, Architecture& model, bool tied);
// num_hidden_layers, hidden_size, and all layers of one kind.
void repeat(Architecture& model, Layer layer, std::int64_t layers);

// Dense language models, and the attention of those with experts.
void read_llama(Members& members, Architecture& model);  // llama, mistral, qwen2, qwen3, gemma to gemma3_text, phi3
void read_gpt_neox(Members& members, Architecture& model);
void read_falcon(Members& members, Architecture& model);
// Queries, keys, values and output as four matrices.
Layer grouped_attention(Members& members, const Architecture& model);

void read_mixture(Members& members, Architecture& model);  // mixtral, qwen2_moe, qwen3_moe, gpt_oss, llama4_text
void read_deepseek(Members& members, Architecture& model);

void read_bert(Members& members, Architecture& model);  // bert, roberta
void read_vit(Members& members, Architecture& model);
void read_gpt2(Members& members, Architecture& model);

std::optional<Quantization> read_quantization(const Cursor& config, Architecture& model);

}  // namespace assay::architecture
