#include "workloads/parallel/layout.h"

#include <fmt/format.h>

namespace assay::parallel {

std::optional<std::string> problem_of(const Layout& layout) {
  if (layout.tp != 1) return fmt::format("tp={}: this build does not divide layers; use tp=1", layout.tp);
  if (layout.pp != 1) return fmt::format("pp={}: this build does not divide the model by layers; use pp=1", layout.pp);
  if (layout.dp < 1 || layout.dp > max_dp) return fmt::format("dp={}: must be from 1 to {}", layout.dp, max_dp);
  if (layout.zero < 0 || layout.zero > max_zero)
    return fmt::format("zero={}: the stages of ZeRO are 0 to {}; use zero={}", layout.zero, max_zero,
                       layout.zero < 0 ? 0 : max_zero);
  return std::nullopt;
}

}  // namespace assay::parallel
