#include "reports/scaling/projection.h"

#include "reports/scaling/step_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::report::scaling {

namespace {

struct HoldOut {
  double predicted = 0;  // seconds
  double missed = 0;     // seconds
  int edge = 1;          // the largest size that was fitted
  int largest = 1;

  // Seconds that the fit may miss at this size.
  double at(double ranks) const { return missed * std::max(0.0, (ranks - edge) / (largest - edge)); }
};

std::optional<HoldOut> hold_out(const Series& series) {
  const std::span smaller(series.points.data(), series.points.size() - 1);
  const WorldPoint& largest = series.points.back();
  // Two sizes determine a model of two terms and leave nothing to choose it by, but the third size still tests it.
  const std::vector<TriedModel> tried =
      try_models(series.mode, smaller, series.points.size() > min_projected_worlds ? 1 : 0);
  if (tried.empty()) return std::nullopt;
  const TriedModel& best = best_model(tried);
  const double predicted = best.fit.at(best.model->at(largest.ranks));
  return HoldOut{predicted, std::abs(predicted - largest.time.value), smaller.back().ranks, largest.ranks};
}

// The relative error of the measured times: a few points may lie closer to a wrong model than that by chance.
double resolution_of(const Series& series) {
  double squares = 0;
  for (const WorldPoint& point : series.points) squares += std::pow(relative_error(point.time).value_or(0), 2);
  return std::max(best_resolution, std::sqrt(squares / static_cast<double>(series.points.size())));
}

// The best efficiency that may be projected.
double best_efficiency(const Series& series) {
  double best = 1;
  for (std::size_t i = 1; i < series.points.size(); ++i) best = std::max(best, efficiency(series, i).value);
  return best;
}

// Shortens a range of times, and gives it its efficiency, where more would be saved than the best efficiency allows.
void limit(Projected& made, const Series& series) {
  const WorldPoint& first = series.points.front();
  const double best = best_efficiency(series);
  Estimate base = first.time;
  // If the base has no interval, the projection's alone.
  if (!base.interval) base.interval = Interval{base.value, base.value};
  const auto shortest = [&](double seconds) {
    return seconds / best * (series.mode == Mode::strong ? static_cast<double>(first.ranks) / made.ranks : 1);
  };
  Estimate& time = *made.time;
  time.value = std::max(time.value, shortest(base.value));
  time.interval = Interval{std::max(time.interval->low, shortest(base.interval->low)),
                           std::max(time.interval->high, shortest(base.interval->high))};
  made.efficiency = efficiency(series.mode, base, first.ranks, time, made.ranks);
  made.efficiency.value = std::min(made.efficiency.value, best);
  made.efficiency.interval->low = std::min(made.efficiency.interval->low, made.efficiency.value);
  made.efficiency.interval->high = std::min(made.efficiency.interval->high, best);
}

Projected project_to(const Series& series, const std::vector<TriedModel>& tried, const TriedModel& best,
                     const HoldOut& held, int ranks) {
  Projected made;
  made.ranks = ranks;
  made.extrapolated = static_cast<double>(ranks) / held.largest > extrapolation_factor;
  const double time = best.fit.at(best.model->at(ranks));
  const double missed = std::log1p(held.at(ranks) / time);
  const auto half_of = [&](const TriedModel& each) {
    return std::hypot(each.fit.log_half_width(each.model->at(ranks)).value_or(0), missed);
  };
  double low = 0, high = 0;
  const char* farthest = best.model->name;
  for (const TriedModel& each : tried) {
    if (refuted(each, best, series.points.size(), resolution_of(series))) continue;
    const double shift = std::log(each.fit.at(each.model->at(ranks)) / time), half = half_of(each);
    if (std::max(half - shift, half + shift) > std::max(-low, high)) farthest = each.model->name;
    low = std::min(low, shift - half);
    high = std::max(high, shift + half);
  }
  if (farthest != best.model->name)
    made.assumption =
        fmt::format("that a step is {}, not {}, which the measured sizes do not refute", best.model->name, farthest);
  else if (missed >= half_of(best) / std::sqrt(2))
    made.assumption = fmt::format("that the error at {} ranks grows no faster than the ranks", held.largest);
  else
    made.assumption = "the coefficients of " + std::string(best.model->name);
  if (!(std::max(-low, high) <= std::log(max_error_factor))) return made;
  made.time = Estimate{time, Interval{time * std::exp(low), time * std::exp(high)}};
  limit(made, series);
  return made;
}

}  // namespace

double Projection::at(double ranks) const {
  const Terms x = chosen->at(ranks);
  double sum = 0;
  for (std::size_t j = 0; j < chosen->terms; ++j) sum += coefficients[j] * x[j];
  return sum;
}

std::optional<Projection> project(const Series& series, std::span<const int> ranks) {
  if (series.points.size() < min_projected_worlds) return std::nullopt;
  const auto held = hold_out(series);
  const std::vector<TriedModel> judged = try_models(series.mode, series.points);
  if (!held || judged.empty()) return std::nullopt;
  const TriedModel& best = best_model(judged);
  // A model that the sizes only just determine cannot be refuted by them either.
  const std::vector<TriedModel> tried = try_models(series.mode, series.points, 0);
  const WorldPoint& largest = series.points.back();
  Projection made{best.model->name,
                  best.fit.rms,
                  largest.ranks,
                  largest.time.value,
                  held->predicted,
                  held->predicted / largest.time.value - 1,
                  {},
                  best.model,
                  best.fit.coefficients};
  for (const int size : ranks) {
    const auto known = std::ranges::find(series.points, size, &WorldPoint::ranks);
    if (known == series.points.end())
      made.sizes.push_back(project_to(series, tried, best, *held, size));
    else
      made.sizes.push_back(
          {size, known->time, efficiency(series, static_cast<std::size_t>(known - series.points.begin())), true});
  }
  return made;
}

}  // namespace assay::report::scaling
