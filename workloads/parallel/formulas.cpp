#include "workloads/parallel/formulas.h"

#include "harness/core/error.h"

namespace assay::parallel {

namespace {

double real(std::int64_t value) { return static_cast<double>(value); }
double sbh(const TransformerShape& shape) { return real(shape.s) * real(shape.b) * real(shape.h); }

}  // namespace

double korthikanti_layer(const TransformerShape& shape, Recompute recompute, std::int64_t t, bool sequence_parallel) {
  const double ways = real(t), scores = 5 * real(shape.a) * real(shape.s) / real(shape.h);
  if (recompute == Recompute::full) return 2 * sbh(shape);
  const double rest = sequence_parallel ? 34 / ways : 10 + 24 / ways;
  return sbh(shape) * (rest + (recompute == Recompute::none ? scores / ways : 0));
}

double korthikanti_outside(const TransformerShape& shape, std::int64_t t) {
  return sbh(shape) / real(t) * (1 + 4 * (1 + real(shape.v) / real(shape.h)));
}

double korthikanti_activations(const TransformerShape& shape, Recompute recompute) {
  return real(shape.layers) * korthikanti_layer(shape, recompute, 1, false) + korthikanti_outside(shape, 1);
}

double megatron_parameters(const TransformerShape& shape) {
  const double h = real(shape.h), norm = shape.rms ? 1 : 2, matrices = shape.gated ? 1.5 : 1;
  const double projected = real(shape.d) * real(shape.a) / h;
  const double attention = 2 * h * h * (1 + real(shape.k) / real(shape.a)) * projected;
  const double layer = 2 * h * (real(shape.f) * matrices + norm) + attention;
  return real(shape.layers) * layer + norm * h + h * real(shape.v) * (shape.tied ? 1 : 2);
}

double megatron_weights_and_optimizer(const TransformerShape& shape, std::int64_t dp, bool distributed) {
  return megatron_parameters(shape) * (distributed ? 6 + 12 / real(dp) : 18);
}

double megatron_layer(const TransformerShape& shape) { return sbh(shape) * (18 + 4 * real(shape.f) / real(shape.h)); }

double megatron_activations(const TransformerShape& shape) {
  const double inputs = 8 * real(shape.s) * real(shape.b), dropout = sbh(shape);
  const double output = 4 * sbh(shape) * (1 + real(shape.v) / real(shape.h));
  return real(shape.layers) * megatron_layer(shape) + inputs + dropout + output;
}

double zero_bytes(double parameters, int stage, std::int64_t dp) {
  constexpr double k = 12;
  switch (stage) {
    case 0: return (2 + 2 + k) * parameters;
    case 1: return (2 + 2) * parameters + k * parameters / real(dp);
    case 2: return 2 * parameters + (2 + k) * parameters / real(dp);
    case 3: return (2 + 2 + k) * parameters / real(dp);
    default: throw Error(fmt::format("ZeRO has no stage {}", stage));
  }
}

}  // namespace assay::parallel
