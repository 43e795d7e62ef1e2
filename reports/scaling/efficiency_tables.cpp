#include "reports/scaling/tables.h"

#include "harness/runs/machine.h"
#include "reports/model/cells.h"
#include "reports/model/words.h"
#include "reports/scaling/series.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::report::scaling {

namespace {

// 0.9 is commonly called good.
constexpr double good_efficiency = 0.9;
constexpr double poor_efficiency = 0.5;

Tone tone_of(double efficiency) {
  return efficiency >= good_efficiency ? Tone::good : efficiency < poor_efficiency ? Tone::bad : Tone::warn;
}

// The text if it is safe in a command line that people copy, else empty.
std::string safe(const std::string& text) {
  const auto harmless = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.' || c == '/';
  };
  return text.size() <= 80 && std::ranges::all_of(text, harmless) ? text : std::string();
}

// World sizes that fit on the machine, as --ranks takes them.
std::string world_sizes(const Entry& entry) {
  const RunMachine machine = machine_of(*entry.run);
  const int places = entry.record->device == "cpu" ? machine.cores.value_or(4) : machine.gpus;
  std::string text = "1,2";
  for (int ranks = 4; ranks <= std::min(places, 64); ranks *= 2) text += fmt::format(",{}", ranks);
  return text;
}

// Runs these families over several world sizes, with fixed threads per rank, as a series needs.
std::string command_for(const std::vector<Lone>& lone) {
  std::set<std::string> families;
  std::map<std::string, std::set<std::string>> models;
  bool cpu = false;
  for (const Lone& each : lone) {
    const Record& record = *each.entry.record;
    const std::string family = safe(record.family);
    if (family.empty()) continue;
    families.insert(family);
    cpu = cpu || record.device == "cpu";
    if (const std::string model = safe(param_text(record, "model")); !model.empty()) models[family].insert(model);
  }
  if (families.empty()) return "assay run scaling";
  std::string command = fmt::format("assay run {}", fmt::join(families, " "));
  for (const std::string& family : families) {
    if (models.contains(family)) command += fmt::format(" --set {}.model={}", family, fmt::join(models[family], ","));
    command += fmt::format(" --set {}.scaling=weak,strong", family);
    if (cpu) command += fmt::format(" --set {}.threads=1", family);
  }
  return command + " --ranks " + world_sizes(lone.front().entry);
}

}  // namespace

std::optional<Table> efficiency_table(const std::vector<Series>& series, Mode mode) {
  Table table{mode == Mode::strong ? "strong" : "weak",
              mode == Mode::strong ? "Strong scaling, N0 T(N0) / (N T(N)): fixed global batch"
                                   : "Weak scaling, T(N0) / T(N): fixed batch per rank",
              {{"series"},
               right("ranks"),
               right("time"),
               right("efficiency"),
               right("efficiency_ci95", "95 %"),
               right("communication"),
               right("runs")}};
  for (const Series& each : series) {
    if (each.mode != mode) continue;
    for (std::size_t i = 0; i < each.points.size(); ++i) {
      const WorldPoint& point = each.points[i];
      const Estimate share = efficiency(each, i);
      Cell series_cell = text_cell(each.title);
      series_cell.link = point.entries.front().anchor();
      table.rows.push_back({series_cell, count_cell(point.ranks), quantity_cell(point.time, "s"),
                            i == 0 ? percent_cell({1}, Tone::faint) : percent_cell(share, tone_of(share.value)),
                            percent_interval_cell(share.interval),
                            point.communication ? percent_cell({*point.communication}) : no_cell(),
                            count_cell(point.entries.size())});
    }
  }
  return table.rows.empty() ? std::nullopt : std::optional(std::move(table));
}

std::optional<Table> excluded_table(const std::vector<Excluded>& excluded) {
  if (excluded.empty()) return std::nullopt;
  Table table{"kept_apart",
              "Left out of the figures above, or a series of its own",
              {{"case"}, {"ranks"}, {"reason"}, right("records"), {"place", "first one"}}};
  for (const Excluded& each : excluded) {
    Cell place = text_cell(each.first.place());
    place.link = each.first.anchor();
    table.rows.push_back({text_cell(each.title),
                          {joined(each.ranks), each.ranks},
                          text_cell(each.reason, Tone::warn),
                          count_cell(each.records),
                          place});
  }
  return table;
}

std::vector<Text> lone_texts(const std::vector<Lone>& lone) {
  if (lone.empty()) return {};
  std::set<int> ranks;
  std::set<std::string> titles;
  for (const Lone& each : lone) {
    ranks.insert(each.ranks);
    titles.insert(each.title);
  }
  const std::string which = *titles.begin() + and_more(titles.size(), 1);
  const std::string sizes = ranks.size() == 1 ? plural(*ranks.begin(), "rank")
                                              : fmt::format("{} ranks, one size each", fmt::join(ranks, ", "));
  return {{fmt::format("Only one comparable world size ({}): {}. Scaling needs at least two; run: {}", sizes, which,
                       command_for(lone)),
           Tone::faint}};
}

}  // namespace assay::report::scaling
