// Seats on hosts that are available: brings lost hosts back, or uses others instead.
#pragma once

#include "harness/hosts/agents.h"
#include "harness/hosts/placement.h"

#include <functional>
#include <string>
#include <vector>

namespace assay {

struct Seating {
  Placement placement;
  std::string missing = {};            // why there are no such seats; the placement is then the planned one
  std::vector<std::string> lost = {};  // the hosts without which there are none
};

// `slots` and `hosts` are all that take part, as at the start of the run; without `agents`, only this host. While it
// waits for lost hosts, `stop` is called and can end the wait; the seats are then not to be used.
Seating seat_ranks(const std::vector<AllocatedHost>& slots, const std::vector<HostInfo>& hosts,
                   const PlacementRequest& request, Agents* agents, const std::function<bool()>& stop);

}  // namespace assay
