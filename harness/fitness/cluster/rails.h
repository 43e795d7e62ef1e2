// Rails: what each host's port reaches on each of them, and collectives of each rail by itself.
#pragma once

#include "harness/fitness/cluster/cluster.h"
#include "harness/fitness/cluster/slow_links.h"
#include "harness/runs/run_set.h"

namespace assay::fitness {

// The record of op=rails with the largest messages, and who explains its slow links (judge_links()).
struct JudgedRails {
  const Record* record = nullptr;
  SlowLinks found = {};

  void take(const Record& one, std::optional<SlowLinks> explained);
};

// Whether the groups of a record are rails (among=rail), not hosts.
bool has_rail_groups(const Record& record);
// The number of a group's ranks among those of their host.
std::size_t rail_of(const Record& record, const RankGroup& group);
// The time of each rail over the usual one: that of the faster quarter of all rails.
std::vector<double> rail_times(const Record& record);

// Notes the ports of `links` (whose record is null if there is none), and judges the groups of rails of all records. A
// rail is slow that takes longer than the limit of slow links, else than the level's share allows. Who explains its
// slow links is told so. If nobody does, the hosts pass: beyond the level's share the switches of that rail are slow,
// else a note says it. Hosts and key are noted as to be measured again.
void judge_rails(const RunSet& runs, const JudgedRails& links, const StageFloors& floors, WorldChecks& world);

}  // namespace assay::fitness
