#include "reports/compare/jobs.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/runs/figures.h"
#include "harness/runs/traced.h"
#include "reports/compare/costs.h"
#include "reports/model/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

namespace assay::report::comparison {

namespace {

constexpr std::size_t max_changed = 10, max_name = 70;

// Spans of watched and traced jobs, as people call them.
constexpr std::array<std::pair<std::string_view, const char*>, 10> part_names{
    {{"data_wait", "waiting for data"},
     {"forward", "forward and all else"},
     {"backward", "backward"},
     {"compute", "GPU computes"},
     {"exposed_communication", "communication"},
     {"waiting_for_ranks", "  of it waiting for the last rank"},
     {"exposed_copies", "GPU only copies"},
     {"optimizer", "optimizer"},
     {"checkpoint", "checkpoint"},
     {"gpu_idle:step", "GPU idle"}}};

std::optional<double> mean_span(const std::vector<const Entry*>& entries, std::string_view name) {
  double sum = 0;
  for (const Entry* entry : entries) {
    const auto span = traced_span(*entry->record, name);
    if (!span || !std::isfinite(*span)) return std::nullopt;
    sum += *span;
  }
  return entries.empty() ? std::nullopt : std::optional(sum / static_cast<double>(entries.size()));
}

constexpr double rounding_seconds = 1e-9;  // of traces

// "+1.2 ms"; in the tones of a report nothing is judged by it.
Cell difference_cell(double base, double head) {
  const double seconds = head - base;
  return {std::abs(seconds) < rounding_seconds
              ? "0"
              : fmt::format("{}{}", seconds < 0 ? "-" : "+", format_seconds(std::abs(seconds))),
          {{"value", seconds}, {"unit", "s"}},
          Tone::plain,
          {},
          seconds};
}

Cell seconds_cell(const std::optional<double>& seconds) { return seconds ? quantity_cell({*seconds}, "s") : no_cell(); }

void add_parts(const Compared& one, Table& table) {
  const Metric* metric = step_metric(*one.pair->base->record);
  if (!metric || !(*metric->value > 0)) return;
  for (const auto& [span, title] : part_names) {
    const auto base = mean_span(one.pair->base_entries, span), head = mean_span(one.pair->head_entries, span);
    if ((!base && !head) || (base.value_or(0) == 0 && head.value_or(0) == 0)) continue;
    table.rows.push_back({case_cell(*one.pair->base->record),
                          {title, std::string(span)},
                          seconds_cell(base),
                          seconds_cell(head),
                          difference_cell(base.value_or(0), head.value_or(0)),
                          share_cell((head.value_or(0) - base.value_or(0)) / *metric->value)});
    name_machine(table, one.pair->machine);
  }
}

// Means over the traces of a side; absent if a run has none.
struct Side {
  std::map<std::string, TracedUse> uses;
  bool kernels = true;
  std::size_t left_out = 0;
};

std::optional<Side> side_of(const std::vector<const Entry*>& entries) {
  Side side;
  const auto runs = static_cast<double>(entries.size());
  for (const Entry* entry : entries) {
    const auto traced = traced_of(entry->run->run);
    if (!traced || traced->uses.empty()) return std::nullopt;
    side.kernels = traced->kernels;
    side.left_out = std::max(side.left_out, traced->left_out);
    for (const TracedUse& use : traced->uses) {
      TracedUse& sum = side.uses[use.name];
      sum.calls += use.calls / runs, sum.seconds += use.seconds / runs;
    }
  }
  return entries.empty() ? std::nullopt : std::optional(std::move(side));
}

struct UseChange {
  std::string name;
  std::optional<TracedUse> base, head;

  double seconds(const std::optional<TracedUse>& use) const { return use ? use->seconds : 0; }
  double change() const { return seconds(head) - seconds(base); }
  const char* what() const { return !base ? "appeared" : !head ? "disappeared" : "changed"; }
};

// The ten of each kind that changed most, in this order: changed, appeared, disappeared; how many were left out.
std::pair<std::vector<UseChange>, std::size_t> changes(const Side& base, const Side& head) {
  std::map<std::string, UseChange> all;
  for (const auto& [name, use] : base.uses) all[name].base = use;
  for (const auto& [name, use] : head.uses) all[name].head = use;
  std::array<std::vector<UseChange>, 3> kinds;
  for (auto& [name, one] : all) {
    one.name = name;
    if (std::abs(one.change()) < rounding_seconds) continue;
    kinds[!one.base ? 1 : !one.head ? 2 : 0].push_back(one);
  }
  std::vector<UseChange> kept;
  std::size_t left_out = 0;
  for (std::vector<UseChange>& kind : kinds) {
    std::ranges::stable_sort(
        kind, [](const UseChange& a, const UseChange& b) { return std::abs(a.change()) > std::abs(b.change()); });
    if (&kind != &kinds.front() && kind.size() > max_changed) left_out += kind.size() - max_changed;
    kind.resize(std::min(kind.size(), max_changed));
    kept.insert(kept.end(), kind.begin(), kind.end());
  }
  return {std::move(kept), left_out};
}

void add_uses(const Compared& one, const Side& base, const Side& head, Table& table,
              std::vector<std::string>& remarks) {
  const auto [rows, left_out] = changes(base, head);
  const auto calls = [](const std::optional<TracedUse>& use) {
    return use ? Cell{format_number(use->calls, 1), use->calls, Tone::plain, {}, use->calls} : no_cell();
  };
  const auto time = [](const std::optional<TracedUse>& use) {
    return seconds_cell(use ? std::optional(use->seconds) : std::nullopt);
  };
  for (const UseChange& row : rows) {
    table.rows.push_back({case_cell(*one.pair->base->record),
                          {row.what(), nullptr},
                          {one_line(row.name, max_name), row.name},
                          time(row.base),
                          time(row.head),
                          difference_cell(row.seconds(row.base), row.seconds(row.head)),
                          calls(row.base),
                          calls(row.head)});
    name_machine(table, one.pair->machine);
  }
  if (left_out > 0) remarks.push_back(fmt::format("{} more appeared or disappeared, which take less time.", left_out));
  if (base.left_out + head.left_out > 0)
    remarks.push_back("A trace had more than are kept: what appeared may have been among its shortest before.");
}

}  // namespace

std::vector<Section> job_sections(const Comparison& comparison) {
  Table parts{"job_parts",
              "",
              {{"case"}, {"part"}, right("base"), right("head"), right("change"), right("of_step", "of base's step")}};
  Table uses{"job_kernels",
             "",
             {{"case"},
              {"what"},
              {"name"},
              right("base"),
              right("head"),
              right("change"),
              right("base_calls", "base calls"),
              right("head_calls", "head calls")}};
  std::vector<std::string> remarks;
  const Pair* last = nullptr;
  for (const Compared& one : comparison.compared) {
    if (!one.pair->headline || one.pair->base->record->family != "command") continue;
    if (last && last->base == one.pair->base && last->machine == one.pair->machine) continue;
    last = one.pair;
    add_parts(one, parts);
    const auto base = side_of(one.pair->base_entries), head = side_of(one.pair->head_entries);
    if (base && head && base->kernels == head->kernels) add_uses(one, *base, *head, uses, remarks);
  }
  std::vector<Section> sections;
  if (!parts.rows.empty()) sections.push_back({"job_parts", "Where the steps changed", {std::move(parts)}});
  if (!uses.rows.empty()) {
    sections.push_back({"job_kernels", "What runs longer or shorter in a step", {std::move(uses)}});
    remarks.push_back(
        "Means over ranks and steps, which nothing judges: an operator counts without those that it calls.");
    for (const std::string& remark : remarks) sections.back().blocks.push_back(Text{remark, Tone::faint});
  }
  return sections;
}

}  // namespace assay::report::comparison
