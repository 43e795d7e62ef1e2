#include "reports/summary/sections.h"

#include "harness/core/units.h"
#include "harness/runs/figures.h"
#include "harness/runs/groups.h"
#include "harness/runs/step_shares.h"
#include "reports/model/cells.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::report {

namespace {

constexpr std::size_t max_rank_rows = 80;

// The step of one rank of a watched job; absent if the record does not divide it by ranks.
std::optional<BarRow> rank_bar(const Record& record, int rank, double step) {
  const std::string of = fmt::format("rank {} ", rank);
  if (!span_of(record, of + "forward")) return std::nullopt;
  std::vector<double> parts;
  double sum = std::max(0.0, span_of(record, of + "checkpoint").value_or(0));
  for (const auto& [span, title] : step_parts) {
    parts.push_back(std::max(0.0, span_of(record, of + std::string(span)).value_or(0)));
    sum += parts.back();
  }
  const double all = std::max(sum, step);
  if (!(all > 0)) return std::nullopt;
  const double waits = span_of(record, of + "waiting_for_ranks").value_or(0);
  BarRow row{fmt::format("  rank {}", rank), fmt::format("waits {} for others", format_percent(waits / all)), {}};
  double other = 1;
  for (const double part : parts) {
    row.parts.push_back(part / all);
    other -= row.parts.back();
  }
  row.parts.push_back(std::max(0.0, other));
  return row;
}

}  // namespace

std::vector<Section> step_sections(const RunSet& runs) {
  constexpr std::size_t max_rows = 20;
  Section section{"steps", "Where a training step goes", {}, false};
  Bars bars{"step-bars", "", "", {}, {}};
  List unlike{"communication_by_muting", {}};
  const std::vector<MachineRuns>& machines = by_machine(runs);
  Table table{"steps", "", {{"case"}, right("step")}};
  for (const auto& [span, title] : step_parts) {
    bars.parts.emplace_back(title);
    table.columns.push_back(right(std::string(span), title));
  }
  table.columns.push_back(right("other"));
  table.columns.push_back(right("muted", "by muting"));
  bars.parts.emplace_back("other");
  for (const MachineRuns& machine : machines)
    for (const CaseRuns& one : machine.cases) {
      const Entry& entry = one.newest();
      const Record& record = *entry.record;
      const Metric* step = step_metric(record);
      if (record.status != Status::ok || !is_training(record) || !step || !(*step->value > 0)) continue;
      if (span_of(record, "compute")) continue;  // trace_sections() shows a GPU's parts
      const std::string name = case_title(record) + (machines.size() > 1 ? " – " + machine.name : "");
      BarRow row{name, figure_text(*step, *step->value), {}};
      row.link = entry.anchor();
      std::vector<Cell> cells{{name, record.key, Tone::plain, entry.anchor()}, quantity_cell({*step->value}, "s")};
      double other = 1;
      for (const auto& [span, title] : step_parts) {
        row.parts.push_back(step_share(record, span).value_or(0));
        other -= row.parts.back();
        cells.push_back(share_cell(row.parts.back()));
      }
      if (other >= 1) continue;
      row.parts.push_back(std::max(0.0, other));
      cells.push_back(share_cell(row.parts.back()));
      const auto communication = communication_share(record);
      cells.push_back(communication && communication->muted ? percent_cell({*communication->muted}) : no_cell());
      if (communication && !communication->agree())
        unlike.items.push_back(fmt::format("{}: {} of the step is communication, {}.", name,
                                           percent_text({communication->pending}), communication->by_muting()));
      if (table.rows.size() < max_rows) bars.rows.push_back(std::move(row));
      for (int rank = 0; rank < record.world_ranks && bars.rows.size() < max_rank_rows; ++rank)
        if (auto bar = rank_bar(record, rank, *step->value)) bars.rows.push_back(std::move(*bar));
      table.rows.push_back(std::move(cells));
    }
  if (table.rows.empty()) return {};
  section.blocks.push_back(std::move(bars));
  section.blocks.push_back(std::move(table));
  section.blocks.push_back(
      Text{"Communication: rank 0 computes nothing and waits for a collective. By muting: how much longer the step "
           "takes than "
           "one that exchanges nothing.",
           Tone::faint});
  if (!unlike.items.empty()) section.blocks.push_back(std::move(unlike));
  return {std::move(section)};
}

}  // namespace assay::report
