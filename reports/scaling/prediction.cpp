#include "reports/scaling/prediction.h"

#include "reports/scaling/efficiency.h"
#include "reports/scaling/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

namespace assay::report::scaling {

namespace {

using Term = double (*)(double ranks);

struct Model {
  const char* name;
  std::size_t terms;
  std::array<Term, max_terms> term;

  Terms at(double ranks) const {
    Terms x{};
    for (std::size_t j = 0; j < terms; ++j) x[j] = term[j](ranks);
    return x;
  }
};

double one(double) { return 1; }
double shared(double ranks) { return 1 / ranks; }
double ring_latency(double ranks) { return ranks - 1; }
double tree_latency(double ranks) { return std::log2(ranks); }
double ring_volume(double ranks) { return (ranks - 1) / ranks; }

const std::array<Model, 5> strong_models{{
    {"compute / N + serial", 2, {shared, one}},
    {"compute / N + log2(N) latency", 2, {shared, tree_latency}},
    {"compute / N + (N-1) latency", 2, {shared, ring_latency}},
    {"compute / N + serial + log2(N) latency", 3, {shared, one, tree_latency}},
    {"compute / N + serial + (N-1) latency", 3, {shared, one, ring_latency}},
}};
const std::array<Model, 6> weak_models{{
    {"compute", 1, {one}},
    {"compute + (N-1)/N volume", 2, {one, ring_volume}},
    {"compute + log2(N) latency", 2, {one, tree_latency}},
    {"compute + (N-1) latency", 2, {one, ring_latency}},
    {"compute + (N-1)/N volume + log2(N) latency", 3, {one, ring_volume, tree_latency}},
    {"compute + (N-1)/N volume + (N-1) latency", 3, {one, ring_volume, ring_latency}},
}};

constexpr double resolution = 1e-4;  // relative; smaller residuals do not decide between models

std::span<const Model> models_of(Mode mode) {
  if (mode == Mode::strong) return strong_models;
  return weak_models;
}

struct Tried {
  const Model* model = nullptr;
  TermFit fit;
  double variance = 0;  // of the residuals, per degree of freedom
};

// Every model that leaves at least one degree of freedom.
std::vector<Tried> try_all(Mode mode, std::span<const WorldPoint> points) {
  std::vector<Tried> tried;
  for (const Model& model : models_of(mode)) {
    if (points.size() <= model.terms) continue;
    std::vector<Observation> observations;
    for (const WorldPoint& point : points)
      observations.push_back({model.at(point.ranks), point.time.value, relative_error(point.time)});
    auto fit = fit_terms(observations, model.terms);
    if (!fit) continue;
    const double squares = fit->rms * fit->rms * static_cast<double>(points.size());
    const double variance = squares / fit->freedom + resolution * resolution;
    tried.push_back({&model, std::move(*fit), variance});
  }
  return tried;
}

// Whether the fitted sizes refute the model in favour of the best one.
bool refuted(const Tried& model, const Tried& best, std::size_t points) {
  const auto cost = [&](const Tried& each) {
    return static_cast<double>(points) * std::log(each.fit.rms * each.fit.rms + resolution * resolution) +
           2.0 * static_cast<double>(each.model->terms);
  };
  return cost(model) - cost(best) >= akaike_margin;
}

}  // namespace

double Prediction::at(double ranks) const {
  const Model& chosen = models_of(mode)[candidate];
  const Terms x = chosen.at(ranks);
  double sum = 0;
  for (std::size_t j = 0; j < chosen.terms; ++j) sum += coefficients[j] * x[j];
  return sum;
}

std::optional<Prediction> predict(const Series& series) {
  if (series.points.size() < min_worlds) return std::nullopt;
  const std::span fitted(series.points.data(), series.points.size() - 1);
  const WorldPoint& largest = series.points.back();
  const std::vector<Tried> tried = try_all(series.mode, fitted);
  if (tried.empty()) return std::nullopt;
  const auto best = std::min_element(tried.begin(), tried.end(), [](const Tried& a, const Tried& b) {
    // On ties, the simpler one, which comes first.
    return a.variance < b.variance * (1 - 1e-6);
  });

  Prediction result;
  result.mode = series.mode;
  result.model = best->model->name;
  result.candidate = static_cast<std::size_t>(best->model - models_of(series.mode).data());
  result.coefficients = best->fit.coefficients;
  result.rms = best->fit.rms;
  result.held_out = largest.ranks;
  result.held_out_time = largest.time.value;
  const double at_largest = result.at(largest.ranks);
  result.error = at_largest / largest.time.value - 1;
  const double missed = std::abs(largest.time.value - at_largest);  // seconds
  const int edge = fitted.back().ranks;
  // Without errors of figures and fit only the hold-out error remains.
  const auto half_at = [&](double ranks) { return best->fit.log_half_width(best->model->at(ranks)).value_or(0); };
  const double own = half_at(largest.ranks);
  result.held_out_predicted = {at_largest, Interval{at_largest * std::exp(-own), at_largest * std::exp(own)}};

  for (const int factor : {2, 4}) {
    if (largest.ranks > std::numeric_limits<int>::max() / factor) break;
    const int ranks = factor * largest.ranks;
    const double time = result.at(ranks);
    const double growth = static_cast<double>(ranks - edge) / (largest.ranks - edge);
    const double half = std::hypot(half_at(ranks), std::log1p(missed * growth / time));
    double low = -half, high = half;
    for (const Tried& other : tried) {
      if (refuted(other, *best, fitted.size())) continue;
      const double shift = std::log(other.fit.at(other.model->at(ranks)) / time);
      low = std::min(low, shift);
      high = std::max(high, shift);
    }
    if (!(std::max(-low, high) <= std::log(max_error_factor))) {
      result.undetermined.push_back(ranks);
      continue;
    }
    Predicted next{ranks, {time, Interval{time * std::exp(low), time * std::exp(high)}}, {}};
    next.efficiency =
        efficiency(series.mode, series.points.front().time, series.points.front().ranks, next.time, ranks);
    // If the base has no interval, use the prediction's alone.
    if (!next.efficiency.interval)
      next.efficiency = efficiency(series.mode,
                                   {series.points.front().time.value,
                                    Interval{series.points.front().time.value, series.points.front().time.value}},
                                   series.points.front().ranks, next.time, ranks);
    result.next.push_back(next);
  }
  return result;
}

}  // namespace assay::report::scaling
