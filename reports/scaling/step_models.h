// The models of a training step over world sizes: sums of the parts of a data-parallel step.
#pragma once

#include "reports/scaling/fit.h"
#include "reports/scaling/series.h"

#include <array>
#include <span>
#include <vector>

namespace assay::report::scaling {

struct StepModel {
  const char* name;  // text for people: "compute / N + serial"
  std::size_t terms;
  std::array<double (*)(double ranks), max_terms> term;

  Terms at(double ranks) const;
};

// Compute (divided by N for strong scaling), serial work, and communication that grows like a ring's latency (N - 1), a
// tree's latency (log2 N) or a ring's volume ((N - 1)/N); forms in alpha_beta.h.
std::span<const StepModel> step_models(Mode mode);

struct TriedModel {
  const StepModel* model = nullptr;
  TermFit fit;
  double variance = 0;  // variance of the residuals, per degree of freedom
};

// Every model that leaves at least `freedom` degrees of freedom.
std::vector<TriedModel> try_models(Mode mode, std::span<const WorldPoint> points, std::size_t freedom = 1);
// The model with the lowest residual variance; of equal models, the one with fewer terms. `tried` is not empty.
const TriedModel& best_model(const std::vector<TriedModel>& tried);
// Whether the sizes that were fitted refute the model in favour of the best one. Residuals below `resolution`,
// relative, do not decide between models.
inline constexpr double best_resolution = 1e-4;
bool refuted(const TriedModel& model, const TriedModel& best, std::size_t points, double resolution = best_resolution);

}  // namespace assay::report::scaling
