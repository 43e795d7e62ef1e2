// The transformer: a decoder or an encoder, depending on its configuration.
#pragma once

#include "workloads/nn/model.h"
#include "workloads/transformer/config.h"

#include <memory>

namespace assay::transformer {

// Parameters, in the order of the forward pass and as the configuration has them: embedding.token.weight,
// embedding.position.weight, embedding.type.weight, embedding.norm.*; for each block.N norm1.*, attention.qkv.*,
// attention.out.*, norm2.*, mlp.in.* (or mlp.gate_up.*, gate first), mlp.out.*; norm.*, head.transform.*, head.norm.*,
// head.weight, head.bias.
std::unique_ptr<nn::Model> make_transformer(const Config& config);

// Rotation of a pair of a head, in radians per position, with the scaling applied.
double rotary_frequency(const Config& config, std::int64_t pair);

}  // namespace assay::transformer
