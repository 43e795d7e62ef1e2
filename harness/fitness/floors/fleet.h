// Relative floors: each host and each GPU against the median of those that ran the same case.
#pragma once

#include "harness/fitness/floors/check.h"

#include <vector>

namespace assay::fitness {

// Decides judgements that have a figure. Records of equal key, device, hardware, world, seed and protocol form a fleet.
// A host that measured more than once counts once, with the median of its figures. If ranks recorded their own medians,
// each rank is judged too, against all ranks of the fleet.
void judge_fleet(const Floor& floor, const RunSet& runs, std::vector<Judgement>& judgements);

// Machines of the runs without any of these judgements: "b", "c and d". Runs that share a host are of one machine; a
// run that names no host may be of any.
std::vector<std::string> hosts_without(const RunSet& runs, const std::vector<Judgement>& judgements);

}  // namespace assay::fitness
