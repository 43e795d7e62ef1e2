// Published formulas of the memory of training, as published: for comparison with what this build plans.
#pragma once

#include "workloads/parallel/layout.h"

#include <cstdint>

namespace assay::parallel {

// A transformer and its micro-batch, in the letters of the papers.
struct TransformerShape {
  std::int64_t s = 0;       // tokens of a sequence
  std::int64_t b = 0;       // sequences of a micro-batch
  std::int64_t h = 0;       // width
  std::int64_t a = 0;       // heads
  std::int64_t k = 0;       // heads of keys and values
  std::int64_t d = 0;       // elements of a head
  std::int64_t f = 0;       // width of the MLP
  std::int64_t layers = 0;  // L
  std::int64_t v = 0;       // vocabulary
  bool gated = false;       // three matrices in the MLP instead of two
  bool rms = false;         // norms without a bias
  bool tied = true;
};

// Korthikanti et al. 2022 (arXiv 2205.05198), "Reducing Activation Recomputation in Large Transformer Models": bytes of
// activations in 16 bits, with dropout masks and, unless recomputed, the square of attention scores.
inline constexpr const char* korthikanti_source = "Korthikanti et al. 2022, arXiv 2205.05198, table 2 and section 4.3";
enum class Recompute { none, selective, full };
// Table 2: one layer with t-way tensor parallelism, also of the sequence or not.
double korthikanti_layer(const TransformerShape& shape, Recompute recompute, std::int64_t t, bool sequence_parallel);
// Section 4.3: embedding, last norm, output layer and loss, on one stage.
double korthikanti_outside(const TransformerShape& shape, std::int64_t t);
double korthikanti_activations(const TransformerShape& shape, Recompute recompute);

// megatron/training/theoretical_memory_usage.py of Megatron-LM, without tensor and pipeline parallelism. Its
// activations are those with sequence parallelism and selective recomputation.
inline constexpr const char* megatron_source =
    "NVIDIA Megatron-LM, megatron/training/theoretical_memory_usage.py, 18 or 6 + 12/dp bytes per parameter";
double megatron_parameters(const TransformerShape& shape);
// `distributed`: its distributed optimizer divides masters and moments between dp ranks.
double megatron_weights_and_optimizer(const TransformerShape& shape, std::int64_t dp, bool distributed);
double megatron_layer(const TransformerShape& shape);
double megatron_activations(const TransformerShape& shape);

// Rajbhandari et al. 2019 (arXiv 1910.02054), section 5: weights, gradients and optimizer state of mixed-precision Adam
// (K = 12), of which stage 0 to 3 divides between dp ranks.
inline constexpr const char* zero_source = "Rajbhandari et al. 2019, arXiv 1910.02054, figure 1 (K = 12)";
double zero_bytes(double parameters, int stage, std::int64_t dp);

}  // namespace assay::parallel
