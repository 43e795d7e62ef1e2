// Imported traces and recorded steps: where the steps of GPUs go, the heaviest kernels, the collectives.
#include "reports/summary/sections.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/runs/figures.h"
#include "harness/runs/groups.h"
#include "harness/runs/traced.h"
#include "reports/model/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace assay::report {

namespace {

constexpr std::size_t max_uses = 20, max_collectives = 20, max_ranks = 80, max_name = 70;

constexpr std::array<std::pair<std::string_view, const char*>, 5> gpu_parts{{{"compute", "computing"},
                                                                             {"exposed_communication", "communication"},
                                                                             {"exposed_copies", "copies"},
                                                                             {"data_wait", "waiting for data"},
                                                                             {"gpu_idle:step", "idle"}}};

// The parts of one rank, or with an empty `of` of all; absent if the record has no GPU's.
std::optional<BarRow> gpu_row(const Record& record, const std::string& of, const std::string& label) {
  BarRow row{label, "", {}};
  double sum = 0;
  for (const auto& [span, title] : gpu_parts) {
    const auto seconds = span_of(record, of + std::string(span));
    if (!seconds || !std::isfinite(*seconds)) return std::nullopt;
    row.parts.push_back(std::max(0.0, *seconds));
    sum += row.parts.back();
  }
  if (!(sum > 0)) return std::nullopt;
  for (double& part : row.parts) part /= sum;
  row.text = format_seconds(sum);
  return row;
}

void add_gpu_parts(const Entry& entry, Bars& bars, Table& table) {
  const Record& record = *entry.record;
  const auto add = [&](const std::string& of, const std::string& label) {
    auto row = gpu_row(record, of, label);
    if (!row) return;
    std::vector<Cell> cells{text_cell(label), text_cell(row->text)};
    for (const double part : row->parts) cells.push_back(share_cell(part));
    table.rows.push_back(std::move(cells));
    bars.rows.push_back(std::move(*row));
  };
  add("", case_title(record));
  for (std::size_t i = 0; i < record.ranks.size() && i < max_ranks; ++i)
    add(fmt::format("rank {} ", record.ranks[i].rank), fmt::format("  rank {}", record.ranks[i].rank));
  // The recorded steps of a watched job, whose other spans are of all its steps.
  add("window ", fmt::format("{}, recorded steps", case_title(record)));
  for (std::size_t i = 0; i < record.ranks.size() && i < max_ranks; ++i)
    add(fmt::format("window rank {} ", record.ranks[i].rank), fmt::format("  rank {}", record.ranks[i].rank));
}

// Rate, intensity, share of the sheet's roof, and which roof that is.
void add_work(const std::optional<TracedWork>& work, std::vector<Cell>& row) {
  const auto share = work ? work->of_bound() : std::nullopt;
  row.push_back(work ? quantity_cell({work->rate()}, "FLOP/s") : no_cell());
  row.push_back(work && !work->dtype.empty() ? text_cell(work->dtype) : no_cell());
  row.push_back(work ? quantity_cell({work->intensity()}, "FLOP/B") : no_cell());
  row.push_back(share ? share_cell(*share) : no_cell());
  row.push_back(share ? text_cell(work->bound_by()) : no_cell());
}

bool has_work(const Traced& traced) {
  return std::ranges::any_of(traced.uses, [](const TracedUse& use) { return use.work.has_value(); });
}

void add_traced(const Entry& entry, const Traced& traced, bool with_work, Table& uses, Table& collectives) {
  const Metric* step = step_metric(*entry.record);
  for (std::size_t i = 0; i < traced.uses.size() && i < max_uses; ++i) {
    const TracedUse& use = traced.uses[i];
    uses.rows.push_back({case_cell(*entry.record, entry.anchor()),
                         {one_line(use.name, max_name), use.name},
                         quantity_cell({use.seconds}, "s"),
                         step && *step->value > 0 ? share_cell(use.seconds / *step->value) : no_cell(),
                         {format_number(use.calls, 1), use.calls, Tone::plain, {}, use.calls}});
    if (with_work) add_work(use.work, uses.rows.back());
  }
  for (std::size_t i = 0; i < traced.collectives.size() && i < max_collectives; ++i) {
    const TracedCollective& one = traced.collectives[i];
    collectives.rows.push_back({case_cell(*entry.record, entry.anchor()),
                                {one_line(one.name, max_name), one.name},
                                {format_number(one.calls, 1), one.calls, Tone::plain, {}, one.calls},
                                quantity_cell({one.transfer}, "s"),
                                quantity_cell({one.skew}, "s"),
                                {fmt::format("rank {} in {}", one.last, format_percent(one.last_share)),
                                 {{"rank", one.last}, {"share", one.last_share}}}});
  }
}

}  // namespace

std::vector<Section> trace_sections(const RunSet& runs) {
  Bars bars{"gpu_step_bars", "", "", {}, {}};
  Table parts{"gpu_steps", "", {{"case"}, right("step")}};
  for (const auto& [span, title] : gpu_parts) {
    bars.parts.emplace_back(title);
    parts.columns.push_back(right(std::string(span), title));
  }
  Table uses{"kernels", "", {{"case"}, {"name"}, right("time"), right("of_step", "of the step"), right("calls")}};
  Table collectives{"collectives_traced",
                    "",
                    {{"case"},
                     {"name"},
                     right("calls"),
                     right("transfer"),
                     right("skew", "wait for the last rank"),
                     {"last", "who comes last"}}};
  bool kernels = false, with_work = false;
  std::vector<std::pair<const Entry*, Traced>> traces;
  for (const MachineRuns& machine : by_machine(runs))
    for (const CaseRuns& one : machine.cases) {
      auto traced = traced_of(one.newest().run->run);
      if (!traced) continue;
      kernels = kernels || traced->kernels;
      with_work = with_work || has_work(*traced);
      traces.emplace_back(&one.newest(), std::move(*traced));
    }
  if (with_work)
    for (Column column : {right("rate"), Column{"dtype"}, right("intensity", "FLOP per byte"),
                          right("of_roof", "of the sheet's roof"), Column{"bound", "bound by"}})
      uses.columns.push_back(std::move(column));
  for (const auto& [entry, traced] : traces) {
    add_gpu_parts(*entry, bars, parts);
    add_traced(*entry, traced, with_work, uses, collectives);
  }
  std::vector<Section> sections;
  if (!parts.rows.empty())
    sections.push_back({"gpu_steps", "What the GPUs do in a step", {std::move(bars), std::move(parts)}});
  if (!uses.rows.empty())
    sections.push_back({"kernels",
                        kernels ? "The heaviest kernels of a step" : "The heaviest operators of a step",
                        {std::move(uses)}});
  if (with_work)
    sections.back().blocks.push_back(Text{
        "Rates and FLOP per byte are of matrix products, convolutions and attention whose shapes the trace has: FLOPs "
        "over the time of all that such an operator ran, in the row of the longest.",
        Tone::faint});
  if (!collectives.rows.empty())
    sections.push_back({"collectives_traced", "Collectives of a step", {std::move(collectives)}});
  return sections;
}

}  // namespace assay::report
