// Search among the forms of a product.
#include "suites/gemm/candidates.h"

#include "harness/statistics/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::gemm {

namespace {

constexpr int max_rounds = 25;
constexpr double indistinguishable = 1.01;

int preference(ops::WeightForm form) {
  switch (form) {
    case ops::WeightForm::packed: return 0;
    case ops::WeightForm::inner_product: return 1;
    case ops::WeightForm::plain: break;
  }
  return 2;
}

}  // namespace

Offer candidates_for(ops::Backend& backend, const Shape& shape) {
  Offer offer;
  for (const auto form : {ops::WeightForm::plain, ops::WeightForm::packed, ops::WeightForm::inner_product}) {
    ops::Made<ops::Matmul> made = backend.make(shape.desc(form));
    if (made)
      offer.candidates.push_back({.form = form, .op = made.take(), .weights = {}});
    else
      offer.refused.push_back(fmt::format("{}: {}", ops::name_of(form), made.reason()));
  }
  return offer;
}

void time_candidates(std::span<Candidate> candidates, Device& device, Stream& stream, bool cold, double budget_seconds,
                     const std::function<void(Candidate&, int)>& run) {
  const auto start = device.make_event();
  const auto stop = device.make_event();
  const auto sample = [&](Candidate& candidate, int repetitions) {
    if (cold) device.flush_cache(stream);
    start->record(stream);
    for (int i = 0; i < repetitions; ++i) run(candidate, i);
    stop->record(stream);
    stop->synchronize();
    return stop->seconds_since(*start) / repetitions;
  };
  double total = 0;
  for (Candidate& candidate : candidates) {
    candidate.seconds = sample(candidate, 1);  // warm-up; used if there is no time for more
    total += candidate.seconds;
  }
  const int rounds = static_cast<int>(std::clamp(budget_seconds / total, 0.0, double{max_rounds}));
  if (rounds == 0) return;
  std::vector<std::vector<double>> times(candidates.size());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      Candidate& candidate = candidates[i];
      const double repetitions = std::ceil(device.shortest_sample() / std::max(candidate.seconds, 1e-9));
      times[i].push_back(sample(candidate, static_cast<int>(std::clamp(repetitions, 1.0, 1e6))));
    }
  for (std::size_t i = 0; i < candidates.size(); ++i) candidates[i].seconds = median(times[i]);
}

std::size_t choose(std::span<const Candidate> candidates) {
  double fastest = candidates.front().seconds;
  for (const Candidate& candidate : candidates) fastest = std::min(fastest, candidate.seconds);
  std::size_t best = candidates.size();
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (candidates[i].seconds <= fastest * indistinguishable &&
        (best == candidates.size() || preference(candidates[i].form) < preference(candidates[best].form)))
      best = i;
  return best;
}

}  // namespace assay::gemm
