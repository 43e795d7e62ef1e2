// What ranks send each other in a step, and what goes between a device and its host.
#pragma once

#include "workloads/architecture/architecture.h"
#include "workloads/planning/layout.h"

#include <string>
#include <vector>

namespace assay::planning {

struct Traffic {
  std::string group;       // "tp", "cp", "ep", "dp", "pp"
  std::int64_t ranks = 1;  // that talk to each other
  double bytes = 0;        // that a rank sends in a step, of the rank that sends most
  bool within_host = true;
};

// Of groups with more than one rank. Ranks are numbered tp first, then cp, dp (ep within), pp: groups of which
// neighbours fill a host of `host_ranks` stay within it. Collectives are rings: an all-reduce sends 2 (n - 1) / n of
// its bytes.
std::vector<Traffic> traffic_of(const architecture::Architecture& model, const Step& step, const Layout& layout,
                                std::int64_t host_ranks);

// Bytes over the device's PCI Express in a step, the larger of both ways; 0 without offload.
double offload_bytes(const architecture::Architecture& model, const Step& step, const Layout& layout);

}  // namespace assay::planning
