#include "reports/summary/key_figures.h"

#include "harness/core/text.h"
#include "harness/fitness/floors/check.h"
#include "harness/record/disturbed.h"
#include "harness/runs/figures.h"
#include "reports/references/references.h"
#include "reports/summary/case_table.h"
#include "reports/summary/key_bars.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::report {

namespace {

constexpr std::size_t max_machines = 20;

}  // namespace

bool amber(const Record& record, const Metric& metric, const fitness::CheckResult* floors) {
  return disturbed(record) || (floors && std::ranges::any_of(floors->undecided(), [&](const auto& one) {
                                 return one.second->entry.record == &record && one.first->metric == metric.name;
                               }));
}

std::vector<Section> key_figure_sections(const RunSet& runs, const References& references,
                                         const fitness::CheckResult* floors) {
  const std::vector<MachineRuns>& machines = by_machine(runs);
  Section section{"figures", "The figures that matter", {}};
  std::size_t shown = 0, cases = 0;
  for (const MachineRuns& machine : machines) {
    const std::vector<KeyFigure> figures = key_figures(machine);
    if (figures.empty() || ++shown > max_machines) continue;
    std::vector<Beside> besides;
    CaseColumns wanted;
    for (const KeyFigure& figure : figures) {
      besides.push_back(beside(figure, machine, references));
      wanted.published = wanted.published || !besides.back().published.empty();
      wanted.such = wanted.such || !besides.back().values.empty();
      wanted.usual = wanted.usual || bound_share_of(*figure.entry, *figure.metric).usual;
    }
    Table table{"figures", machines.size() > 1 ? machine.title : "", case_columns(wanted)};
    for (std::size_t i = 0; i < figures.size(); ++i) {
      CaseRow row{figures[i].entry, figures[i].metric, figures[i].title};
      row.published = besides[i].published;
      row.such = place_among(*figures[i].metric, besides[i].values);
      row.amber = amber(*figures[i].entry->record, *figures[i].metric, floors);
      table.rows.push_back(case_row(row, wanted));
    }
    cases += figures.size();
    section.blocks.push_back(bars_of(figures, besides, fmt::format("bars-{}", shown), table.title));
    section.blocks.push_back(std::move(table));
  }
  if (shown > max_machines)
    section.blocks.push_back(
        Text{plural(shown - max_machines, "more machine") + ": pass fewer directories to see their figures."});
  if (section.blocks.empty()) return {};
  // With few cases the table of cases already shows everything.
  section.in_terminal = runs.entries().size() > cases && !hosts_of_one_run(runs);
  return {std::move(section)};
}

}  // namespace assay::report
