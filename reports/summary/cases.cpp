#include "reports/summary/sections.h"

#include "harness/core/text.h"
#include "harness/runs/figures.h"
#include "harness/runs/groups.h"
#include "reports/summary/case_table.h"
#include "reports/summary/collective_table.h"

#include <algorithm>

namespace assay::report {

namespace {

constexpr std::size_t max_rows = 5000;  // of one section: nobody reads more, and the page must stay loadable

// The newest figure of a case, with the range over the runs that count.
CaseRow row_of(const CaseRuns& one) {
  const Record& record = *one.newest().record;
  CaseRow row{&one.newest(), headline_metric(record), case_title(record), one.entries.size()};
  if (!row.metric || one.entries.size() < 2) return row;
  for (const Entry* entry : one.entries) {
    const Metric* metric = find_metric(*entry->record, row.metric->name);
    if (!metric || metric->unit != row.metric->unit) continue;
    if (entry->record->status != Status::ok || injected(*entry->record)) continue;
    if (!row.range) row.range = Interval{*metric->value, *metric->value};
    row.range = Interval{std::min(row.range->low, *metric->value), std::max(row.range->high, *metric->value)};
  }
  return row;
}

std::vector<Section> tables_of(const RunSet& runs, const char* id, const char* title, bool training) {
  const std::vector<MachineRuns>& machines = by_machine(runs);
  Section section{id, title, {}, !hosts_of_one_run(runs)};
  std::size_t rows = 0, left_out = 0;
  for (const MachineRuns& machine : machines) {
    std::map<std::string, std::vector<CaseRow>> families;
    CaseColumns wanted;
    for (const CaseRuns& one : machine.cases) {
      if (is_training(*one.newest().record) != training) continue;
      if (++rows > max_rows) {
        ++left_out;
        continue;
      }
      CaseRow row = row_of(one);
      wanted.reference |= row.metric && row.metric->reference;
      wanted.runs |= row.runs > 1;
      families[one.newest().record->family].push_back(std::move(row));
    }
    for (const auto& [family, members] : families) {
      Table table{family.empty() ? "cases" : family, machines.size() > 1 ? family + ", " + machine.title : family,
                  case_columns(wanted)};
      for (const CaseRow& row : members) table.rows.push_back(case_row(row, wanted));
      section.blocks.push_back(std::move(table));
    }
  }
  if (left_out > 0)
    section.blocks.push_back(
        Text{plural(left_out, "more case") + " not shown: pass fewer directories to see them.", Tone::warn});
  if (section.blocks.empty()) return {};
  return {std::move(section)};
}

}  // namespace

std::vector<Section> suite_sections(const RunSet& runs) { return tables_of(runs, "suites", "Suites", false); }
std::vector<Section> workload_sections(const RunSet& runs) { return tables_of(runs, "workloads", "Workloads", true); }

std::vector<Section> collective_sections(const RunSet& runs, bool in_terminal) {
  constexpr std::size_t max_machines = 20;
  const std::vector<MachineRuns>& machines = by_machine(runs);
  Section section{"collectives", "Collectives, in nccl-tests' form", {}, in_terminal};
  for (std::size_t i = 0; i < std::min(machines.size(), max_machines); ++i) {
    std::vector<const Record*> records;
    for (const CaseRuns& one : machines[i].cases) records.push_back(one.newest().record);
    std::string table = collective_table(records);
    if (table.empty()) continue;
    if (machines.size() > 1) section.blocks.push_back(Text{machines[i].title});
    section.blocks.push_back(Verbatim{"nccl-tests", std::move(table)});
  }
  if (section.blocks.empty()) return {};
  return {std::move(section)};
}

}  // namespace assay::report
