// Groups of hosts that ran a collective side by side: which hosts are slow whatever their partners are.
#pragma once

#include "harness/fitness/cluster/cluster.h"
#include "harness/fitness/cluster/slow_links.h"

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace assay::fitness {

struct HostGroup {
  std::vector<std::size_t> hosts;  // each below the number of hosts
  double time = 0;                 // of any unit; > 0
};

struct SlowHost {
  std::size_t host = 0;
  std::size_t slow = 0, groups = 0;  // how many of its groups are slow
  double times = 1;                  // the median of its groups, times the usual time of groups of their size
  bool sure = true;
};

struct SlowGroups {
  double limit = 0;             // times the usual time: a group beyond it is slow
  std::vector<SlowHost> hosts;  // those that explain most first; then those that are not sure
};

// The fewest hosts that explain the slow groups. The usual time is that of the faster quarter of the groups of a size,
// and the limit is drawn from the spread of the groups that are faster than that, within `limits` (SlowLimits::seconds
// is ignored). A host is named if five of six of its groups are slow, some of every size among them, and if the other
// hosts that are named leave three of them unexplained. A host is not sure if two thirds of its groups
// are slow, two at least, and no such host is in them. Slow groups that are left are chance.
SlowGroups explain_slow_groups(std::vector<HostGroup> groups, std::size_t hosts, SlowLimits limits);

// Judges the groups of a record: hosts that explain_slow_groups() is sure of fail; but if they are more than a third of
// all, or most of a leaf switch, they are inconclusive, as others are. Hosts and key are noted as to be measured again.
void judge_groups(const Record& record, const StageFloors& floors, WorldChecks& world);

// Groups that were measured again, by the usual ones of their time, count with the better figure: rails as they are;
// a group of hosts is no slower than the suspects in it were in the median of their groups of that time. The metrics
// follow.
void keep_better_groups(Record& first, const Record& again, const std::set<std::string>& suspects);

}  // namespace assay::fitness
