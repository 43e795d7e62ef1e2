// The configuration of a transformer, read from configs/models/*.json or a Hugging Face config.json.
#pragma once

#include "harness/json/fwd.h"
#include "workloads/ops/activation.h"
#include "workloads/ops/norm.h"

#include <cstdint>
#include <optional>
#include <string>

namespace assay::transformer {

enum class Position { learned, rotary, none };

// Llama 3.1's scaling of the rotary frequencies for longer contexts: wavelengths above original_positions /
// low_frequency_factor are multiplied by `factor`, those below original_positions / high_frequency_factor are kept, and
// wavelengths in between are interpolated.
struct RotaryScaling {
  double factor = 1;
  double low_frequency_factor = 1;
  double high_frequency_factor = 4;
  double original_positions = 8192;
};

struct Config {
  std::string name;
  std::string family = "transformer";  // or "llama": the family of cases that trains it
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;  // maximum sequence length
  std::int64_t window =
      0;  // window of sliding attention. No layer has it, so longer sequences are refused; 0: no window
  std::int64_t layers = 0;
  std::int64_t width = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t mlp_width = 0;
  ops::NormKind norm = ops::NormKind::layer;
  bool post_norm = false;  // norms after each residual add, as in BERT; else before each part
  double norm_epsilon = 1e-5;
  Position position = Position::learned;
  double rotary_base = 10000;
  std::optional<RotaryScaling> rotary_scaling;
  ops::ActivationKind mlp = ops::ActivationKind::gelu_tanh;
  bool bias = true;
  bool qkv_bias = false;  // where `bias` is false: of queries, keys and values all the same
  bool tied = true;
  bool causal = true;
  bool padding_mask = false;     // batches carry lengths
  std::int64_t token_types = 0;  // 0: none
  bool head_transform = false;   // a dense layer, gelu and norm before the head, and a bias, as in BERT
  double deviation = 0.02;       // standard deviation of the initial weights
  bool scaled_residual = false;  // projections into the residual stream start at deviation / sqrt(2 layers), as GPT-2's
};

// Throws UsageError with a line "FILE: POINTER: WHAT" for each error, also for a feature that this build lacks.
// `source` is what messages call the JSON.
Config read_config(const Json& json, const std::string& source, const std::string& name);

}  // namespace assay::transformer
