#include "harness/sampling/straggler.h"

#include "harness/statistics/slowest.h"

#include <algorithm>

namespace assay {

namespace {

constexpr double min_straggler_ratio = 1.5;

}  // namespace

std::optional<Straggler> find_straggler(std::span<const double> paces) {
  if (std::ranges::any_of(paces, [](double pace) { return !(pace > 0); })) return std::nullopt;
  const auto slowest = slowest_of(paces);
  if (!slowest || !slowest->stands_out() || slowest->ratio() < min_straggler_ratio) return std::nullopt;
  return Straggler{static_cast<int>(slowest->index), slowest->ratio()};
}

}  // namespace assay
