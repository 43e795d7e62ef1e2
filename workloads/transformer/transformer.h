// The transformer: decoder or encoder, by its configuration.
#pragma once

#include "workloads/nn/model.h"
#include "workloads/transformer/config.h"

#include <memory>

namespace assay::transformer {

// Parameters, in the order of the forward pass: embedding.token.weight, embedding.position.weight,
// embedding.type.weight, embedding.norm.*, then of each block.N: norm1.*, attention.qkv.*, attention.out.*, norm2.*,
// mlp.in.* (or mlp.gate_up.*, gate first), mlp.out.*, then norm.*, head.transform.*, head.norm.*, head.weight,
// head.bias; those that the configuration has.
std::unique_ptr<nn::Model> make_transformer(const Config& config);

// Turns a token's position adds to pair i of a head, in radians, with the scaling applied.
double rotary_frequency(const Config& config, std::int64_t pair);

}  // namespace assay::transformer
