#include "workloads/architecture/architecture.h"

#include <algorithm>

namespace assay::architecture {

namespace {

std::int64_t sum(const Architecture& model, std::int64_t (Weight::*size)() const) {
  const auto of = [size](const std::vector<Weight>& weights) {
    std::int64_t total = 0;
    for (const Weight& weight : weights) total += (weight.*size)();
    return total;
  };
  std::vector<std::int64_t> layers;
  layers.reserve(model.kinds.size());
  for (const Layer& kind : model.kinds) layers.push_back(of(kind.weights));
  std::int64_t total = of(model.first) + of(model.last);
  for (const std::size_t kind : model.order) total += layers.at(kind);
  return total;
}

}  // namespace

std::int64_t count(const std::vector<Weight>& weights) {
  std::int64_t total = 0;
  for (const Weight& weight : weights) total += weight.count();
  return total;
}

std::int64_t Architecture::experts() const {
  std::int64_t most = 0;
  for (const Layer& kind : kinds) most = std::max(most, kind.experts);
  return most;
}

std::int64_t Architecture::parameters() const { return sum(*this, &Weight::count); }

std::int64_t Architecture::active_parameters() const { return sum(*this, &Weight::active); }

double Architecture::stored_bits(const Weight& weight, double bits) const {
  if (!stored || !weight.linear() || (stored->experts_only && weight.part != Part::experts)) return bits;
  // By their own names, or all of an attention block: "model.layers.0.self_attn".
  const bool kept = std::ranges::any_of(stored->kept, [&](const std::string& one) {
    const bool attention = weight.part == Part::attention && one.ends_with("attn");
    return attention || one == weight.name || one.ends_with("." + weight.name);
  });
  return kept ? bits : stored->linear_bits;
}

}  // namespace assay::architecture
