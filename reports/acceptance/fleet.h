// Floors that are relative: each host, and each GPU, against the median of those that measured the same.
#pragma once

#include "reports/acceptance/acceptance.h"

#include <vector>

namespace assay::report {

// Decides judgements that have a figure. Only records of equal key, device, hardware, world, seed and protocol are one
// fleet. A host that measured more than once counts once, with the median of its figures. Where ranks told their own
// medians, each is judged too, beside all ranks of the fleet.
void judge_fleet(const Floor& floor, const RunSet& runs, std::vector<Judgement>& judgements);

// Machines of the runs that none of these judgements is of: "b", "c and d". Runs that share a host are of one machine;
// a run that names no host may be of any.
std::vector<std::string> hosts_without(const RunSet& runs, const std::vector<Judgement>& judgements);

}  // namespace assay::report
