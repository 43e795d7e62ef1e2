#include "harness/core/text.h"
#include "harness/runs/groups.h"
#include "reports/bounds/bounds.h"
#include "reports/model/cells.h"
#include "reports/model/document.h"

namespace assay::report {

std::vector<Section> part_sections(const RunSet& runs) {
  constexpr std::size_t max_machines = 6;
  const std::vector<MachineRuns>& machines = by_machine(runs);
  Section section{"parts", "What the parts allow", {}, false};
  for (std::size_t i = 0; i < std::min(machines.size(), max_machines); ++i) {
    Table table{"parts", machines.size() > 1 ? machines[i].name : "", {{"part"}, {"allows"}, {"source"}}};
    for (const PartLine& line : part_lines(runs.runs()[machines[i].runs.back()]))
      table.rows.push_back(
          {text_cell(line.part), line.allows.empty() ? no_cell() : text_cell(line.allows), text_cell(line.source)});
    if (!table.rows.empty()) section.blocks.push_back(std::move(table));
  }
  if (section.blocks.empty()) return {};
  if (machines.size() > max_machines)
    section.blocks.push_back(Text{plural(machines.size() - max_machines, "more machine") + " not shown."});
  section.blocks.push_back(
      Text{"Bounds of the parts themselves, before any loss. Usual shares of them, with sources, are in "
           "configs/normal/parts.json."});
  return {std::move(section)};
}

}  // namespace assay::report
