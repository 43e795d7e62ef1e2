// Finds what most hosts of a fleet have, as an expectation that others can be held against.
#pragma once

#include "harness/fitness/cluster/audits.h"

#include <set>
#include <string>
#include <vector>

namespace assay::fitness {

struct Majority {
  Json expectation;                     // what more than half of the hosts have; null: nothing
  std::set<std::string> hosts;          // with the processors and GPUs of most; empty: no kind of host has a majority
  std::vector<std::string> notes = {};  // ties, and hosts of another kind
};

// Over the inventories of the hosts that answered. Each member has the value of more than half of them; of memory and
// swap it is what more than half have at least. A member on which no such value exists is left out, and noted.
Majority majority_of(const std::vector<AuditedHost>& hosts);

}  // namespace assay::fitness
