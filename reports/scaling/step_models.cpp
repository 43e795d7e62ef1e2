#include "reports/scaling/step_models.h"

#include <algorithm>
#include <cmath>

namespace assay::report::scaling {

namespace {

double one(double) { return 1; }
double shared(double ranks) { return 1 / ranks; }
double ring_latency(double ranks) { return ranks - 1; }
double tree_latency(double ranks) { return std::log2(ranks); }
double ring_volume(double ranks) { return (ranks - 1) / ranks; }

const std::array<StepModel, 5> strong_models{{
    {"compute / N + serial", 2, {shared, one}},
    {"compute / N + log2(N) latency", 2, {shared, tree_latency}},
    {"compute / N + (N-1) latency", 2, {shared, ring_latency}},
    {"compute / N + serial + log2(N) latency", 3, {shared, one, tree_latency}},
    {"compute / N + serial + (N-1) latency", 3, {shared, one, ring_latency}},
}};
const std::array<StepModel, 6> weak_models{{
    {"compute", 1, {one}},
    {"compute + (N-1)/N volume", 2, {one, ring_volume}},
    {"compute + log2(N) latency", 2, {one, tree_latency}},
    {"compute + (N-1) latency", 2, {one, ring_latency}},
    {"compute + (N-1)/N volume + log2(N) latency", 3, {one, ring_volume, tree_latency}},
    {"compute + (N-1)/N volume + (N-1) latency", 3, {one, ring_volume, ring_latency}},
}};

}  // namespace

Terms StepModel::at(double ranks) const {
  Terms x{};
  for (std::size_t j = 0; j < terms; ++j) x[j] = term[j](ranks);
  return x;
}

std::span<const StepModel> step_models(Mode mode) {
  if (mode == Mode::strong) return strong_models;
  return weak_models;
}

std::vector<TriedModel> try_models(Mode mode, std::span<const WorldPoint> points, std::size_t freedom) {
  std::vector<TriedModel> tried;
  for (const StepModel& model : step_models(mode)) {
    if (points.size() < model.terms + freedom) continue;
    std::vector<Observation> observations;
    for (const WorldPoint& point : points)
      observations.push_back({model.at(point.ranks), point.time.value, relative_error(point.time)});
    auto fit = fit_terms(observations, model.terms);
    if (!fit) continue;
    const double squares = fit->rms * fit->rms * static_cast<double>(points.size());
    const double variance = squares / std::max(1, fit->freedom) + best_resolution * best_resolution;
    tried.push_back({&model, std::move(*fit), variance});
  }
  return tried;
}

const TriedModel& best_model(const std::vector<TriedModel>& tried) {
  return *std::ranges::min_element(tried, [](const TriedModel& a, const TriedModel& b) {
    // On ties, the simpler one, which comes first.
    return a.variance < b.variance * (1 - 1e-6);
  });
}

bool refuted(const TriedModel& model, const TriedModel& best, std::size_t points, double resolution) {
  const auto cost = [&](const TriedModel& each) {
    return static_cast<double>(points) * std::log(each.fit.rms * each.fit.rms + resolution * resolution) +
           2.0 * static_cast<double>(each.model->terms);
  };
  return cost(model) - cost(best) >= akaike_margin;
}

}  // namespace assay::report::scaling
