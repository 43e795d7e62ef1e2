#include "reports/summary/sections.h"

#include "harness/runs/figures.h"
#include "harness/runs/groups.h"
#include "reports/model/cells.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::report {

namespace {

constexpr std::array<std::pair<std::string_view, const char*>, 5> spans{{{"forward", "forward"},
                                                                         {"backward", "backward"},
                                                                         {"optimizer", "optimizer"},
                                                                         {"data_wait", "waiting for data"},
                                                                         {"exposed_communication", "communication"}}};

double part_of(const Record& record, std::string_view span) { return std::max(0.0, span_of(record, span).value_or(0)); }

}  // namespace

std::vector<Section> step_sections(const RunSet& runs) {
  constexpr std::size_t max_rows = 20;
  Section section{"steps", "Where a training step goes", {}, false};
  Bars bars{"step-bars", "", "", {}, {}};
  Table table{"steps", "", {{"case"}, right("step")}};
  for (const auto& [span, title] : spans) {
    bars.parts.emplace_back(title);
    table.columns.push_back(right(std::string(span), title));
  }
  table.columns.push_back(right("other"));
  bars.parts.emplace_back("other");
  for (const MachineRuns& machine : by_machine(runs))
    for (const CaseRuns& one : machine.cases) {
      const Entry& entry = one.newest();
      const Record& record = *entry.record;
      const Metric* step = find_metric(record, "step_time");
      if (record.status != Status::ok || !is_training(record) || !step || !(*step->value > 0)) continue;
      // The parts are means, the step is a median: where they do not fit, they are shares of their own sum.
      double sum = 0;
      for (const auto& [span, title] : spans) sum += part_of(record, span);
      const double whole = std::max(sum, *step->value);
      if (sum == 0) continue;
      BarRow row{case_title(record), figure_text(*step, *step->value), {}};
      row.link = entry.anchor();
      std::vector<Cell> cells{case_cell(record, entry.anchor()), quantity_cell({*step->value}, "s")};
      for (const auto& [span, title] : spans) {
        row.parts.push_back(part_of(record, span) / whole);
        cells.push_back(share_cell(row.parts.back()));
      }
      row.parts.push_back(1 - sum / whole);
      cells.push_back(share_cell(row.parts.back()));
      if (table.rows.size() < max_rows) bars.rows.push_back(std::move(row));
      table.rows.push_back(std::move(cells));
    }
  if (table.rows.empty()) return {};
  section.blocks.push_back(std::move(bars));
  section.blocks.push_back(std::move(table));
  return {std::move(section)};
}

}  // namespace assay::report
