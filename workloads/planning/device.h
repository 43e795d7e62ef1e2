// The memory of a device that must hold a plan.
#pragma once

#include <cstdint>

namespace assay::planning {

// Its bytes, and what its libraries keep there with one and with several ranks.
struct Device {
  double bytes = 0;
  double alone = 0, together = 0;

  double allowance(std::int64_t ranks) const { return ranks > 1 ? together : alone; }
  double left(std::int64_t ranks) const { return bytes - allowance(ranks); }
};

}  // namespace assay::planning
