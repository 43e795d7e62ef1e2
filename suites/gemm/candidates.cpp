// Search among the forms of a product.
#include "suites/gemm/candidates.h"

#include "harness/core/clock.h"
#include "harness/statistics/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace assay::gemm {

namespace {

constexpr int max_rounds = 25;
constexpr double indistinguishable = 1.01;

int preference(ops::WeightForm form) {
  switch (form) {
    case ops::WeightForm::packed: return 0;
    case ops::WeightForm::inner_product: return 1;
    case ops::WeightForm::tiles: return 2;
    case ops::WeightForm::plain: break;
  }
  return 3;
}

}  // namespace

Offer candidates_for(ops::Backend& backend, const Shape& shape) {
  Offer offer;
  for (const auto form :
       {ops::WeightForm::plain, ops::WeightForm::packed, ops::WeightForm::inner_product, ops::WeightForm::tiles}) {
    ops::Made<ops::Matmul> made = backend.make<ops::Matmul>(shape.desc(form));
    if (made)
      offer.candidates.push_back({.form = form, .op = made.take(), .weights = {}});
    else
      offer.refused.push_back(fmt::format("{}: {}", ops::name_of(form), made.reason()));
  }
  return offer;
}

void time_candidates(std::span<Candidate> candidates, Device& device, Stream& stream, const Trial& trial,
                     double budget_seconds) {
  const Clock::time_point begin = Clock::now();
  const auto spent = [&] { return seconds_since(begin); };
  const auto start = device.make_event();
  const auto stop = device.make_event();
  const auto sample = [&](const Candidate& candidate, int repetitions) {
    if (trial.evict) trial.evict(candidate, repetitions);
    start->record(stream);
    for (int i = 0; i < repetitions; ++i) trial.run(candidate, i);
    stop->record(stream);
    stop->synchronize();
    return stop->seconds_since(*start) / repetitions;
  };
  std::vector<std::size_t> in_order(candidates.size());
  std::iota(in_order.begin(), in_order.end(), std::size_t{0});
  std::ranges::sort(in_order, {}, [&](std::size_t i) { return preference(candidates[i].form); });
  // The first samples are warm-up; they count if there is no time for more.
  for (const std::size_t i : in_order) {
    if (i != in_order.front() && spent() >= budget_seconds) return;
    if (trial.prepare) trial.prepare(candidates[i]);
    candidates[i].seconds = sample(candidates[i], 1);
  }
  std::vector<std::vector<double>> times(candidates.size());
  for (int round = 0; round < max_rounds && spent() < budget_seconds; ++round)
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const double repetitions = std::ceil(device.shortest_sample() / std::max(candidates[i].seconds, 1e-9));
      const double limit = trial.max_repetitions;
      times[i].push_back(sample(candidates[i], static_cast<int>(std::clamp(repetitions, 1.0, limit))));
    }
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (!times[i].empty()) candidates[i].seconds = median(times[i]);
}

std::size_t choose(std::span<const Candidate> candidates) {
  double fastest = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : candidates)
    if (candidate.seconds > 0) fastest = std::min(fastest, candidate.seconds);
  std::size_t best = candidates.size();
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (candidates[i].seconds > 0 && candidates[i].seconds <= fastest * indistinguishable &&
        (best == candidates.size() || preference(candidates[i].form) < preference(candidates[best].form)))
      best = i;
  return best;
}

}  // namespace assay::gemm
