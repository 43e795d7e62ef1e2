// Seats on hosts that are there: lost ones are brought back for it, and where that is in vain others take their place.
#pragma once

#include "harness/hosts/agents.h"
#include "harness/hosts/placement.h"

#include <functional>
#include <string>
#include <vector>

namespace assay {

struct Seating {
  Placement placement;
  std::string missing = {};  // why there are no such seats; then the placement is the planned one
};

// `slots` and `hosts` are all that take part, as they were at the start of the run. Without `agents` this host alone
// takes part. `stop` is called while lost hosts are waited for and ends that; then the seats are not to be used.
Seating seat_ranks(const std::vector<AllocatedHost>& slots, const std::vector<HostInfo>& hosts,
                   const PlacementRequest& request, Agents* agents, const std::function<bool()>& stop);

}  // namespace assay
