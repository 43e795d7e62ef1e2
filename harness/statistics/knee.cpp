#include "harness/statistics/knee.h"

#include <algorithm>

namespace assay {

std::optional<std::size_t> knee_of(std::span<const std::optional<double>> rates) {
  const auto best = std::ranges::max_element(rates);  // an absent one is the least
  if (best == rates.end() || !*best) return std::nullopt;
  const double enough = (1 - knee_share) * **best;
  const auto knee = std::ranges::find_if(rates, [&](const auto& rate) { return rate && *rate >= enough; });
  return static_cast<std::size_t>(knee - rates.begin());
}

}  // namespace assay
