#include "reports/history/confirm.h"

#include "reports/history/history.h"

#include <cmath>

namespace assay::history {

namespace {

// 0 of a step within the range of its series' excursions.
double size_of(const Suspect& suspect) { return suspect.change.same_night ? std::abs(suspect.change.shift) : 0; }

}  // namespace

const Suspect* to_confirm(const std::vector<Suspect>& suspects) {
  const Suspect* best = nullptr;
  for (const Suspect& one : suspects)
    if (!one.dismissed && (!best || size_of(one) > size_of(*best))) best = &one;
  return best;
}

double confirm_error(const Options& options, std::size_t earlier) {
  return std::ldexp(options.false_alarms * confirm_share, -1 - static_cast<int>(earlier));
}

bool is_confirmed(Direction verdict, bool slower) {
  return verdict == (slower ? Direction::slower : Direction::faster);
}

}  // namespace assay::history
