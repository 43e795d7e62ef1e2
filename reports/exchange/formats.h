// The texts of export_formats(), a file each.
#pragma once

#include "harness/runs/groups.h"
#include "harness/runs/run_set.h"
#include "reports/cost/match.h"

#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

std::string prometheus_text(const RunSet& runs);
std::string csv_text(const RunSet& runs, const PriceSource& prices);
std::string gbench_text(const RunSet& runs);
// Cases that Google Benchmark's JSON has no place for: it is of times.
std::vector<std::string> cases_without_time(const RunSet& runs);
std::string bmf_text(const RunSet& runs);
std::string trace_text(const RunSet& runs);

// The host of a record's first rank; empty if it names none.
inline std::string host_of(const Record& record) { return record.ranks.empty() ? "" : record.ranks.front().host; }

// Calls look(machine, newest entry) for every case of every machine.
template <typename Look>
void each_newest(const RunSet& runs, const Look& look) {
  for (const MachineRuns& machine : by_machine(runs))
    for (const CaseRuns& one : machine.cases) look(machine, one.newest());
}

}  // namespace assay::report
