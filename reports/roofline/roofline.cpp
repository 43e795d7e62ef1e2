#include "reports/roofline/roofline.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "reports/model/cells.h"
#include "reports/model/words.h"
#include "reports/roofline/roofs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace assay::report {

namespace {

constexpr std::size_t max_machines = 10;
constexpr std::size_t max_rows = 500;  // of one table

enum class Kind { gemm, memory, training };

struct Dot {
  Kind kind = Kind::gemm;
  const Entry* entry = nullptr;
  double intensity = 0;  // FLOP per byte
  double rate = 0;       // FLOP/s of one unit
  std::optional<Interval> range;
};

struct Roofs {
  std::optional<Roof> compute, memory, sheet_compute, sheet_memory;
  const char* unit = "FLOP/s";  // of a rate of computing
};

// Operations per counted byte, with elements of 8 bytes (STREAM: McCalpin 1995; `read` is a sum).
double memory_intensity(const std::string& op) {
  if (op == "read") return 1.0 / 8;
  if (op == "scale") return 1.0 / 16;
  if (op == "add") return 1.0 / 24;
  if (op == "triad") return 2.0 / 24;
  return 0;  // copy, write, latency: no arithmetic
}

// The dot that a record adds to the figure of `dtype`, if any.
std::optional<Dot> dot_of(const Entry& entry, std::string_view dtype) {
  const Record& record = *entry.record;
  const auto dot = [&](Kind kind, const Metric* metric, std::optional<double> intensity,
                       double by) -> std::optional<Dot> {
    if (!metric || !intensity || !(*intensity > 0) || !std::isfinite(*intensity) || !(*metric->value * by > 0))
      return std::nullopt;
    return Dot{kind, &entry, *intensity, *metric->value * by, scaled(metric->ci95, by)};
  };
  if (record.family == "gemm" && param_text(record, "dtype") == dtype)
    return dot(Kind::gemm, find_metric(record, "throughput"), gemm_intensity(record), 1 / units_of(record, false));
  if (record.family == "memory") {
    const double intensity = memory_intensity(param_text(record, "op"));
    return dot(Kind::memory, find_metric(record, "bandwidth"), intensity, intensity / units_of(record, false));
  }
  if (is_training(record) && param_text(record, "precision") == dtype)
    return dot(Kind::training, find_metric(record, "model_flops"), training_intensity(record),
               1 / units_of(record, true));
  return std::nullopt;
}

// FLOP/s; infinite without a roof.
double under(const std::optional<Roof>& compute, const std::optional<Roof>& memory, double intensity) {
  double roof = INFINITY;
  if (compute) roof = compute->value;
  if (memory) roof = std::min(roof, memory->value * intensity);
  return roof;
}

Curve roof_curve(const char* name, const std::optional<Roof>& compute, const std::optional<Roof>& memory, double from,
                 double to) {
  Curve curve{name, Mark::line, {}, true};
  std::vector<double> at{from, to};
  if (compute && memory) {
    const double ridge = compute->value / memory->value;
    if (ridge > from && ridge < to) at.insert(at.begin() + 1, ridge);
  }
  for (const double x : at) curve.points.push_back({x, under(compute, memory, x)});
  return curve;
}

Cell of_roof_cell(double rate, double roof) {
  return roof > 0 && std::isfinite(roof) ? share_cell(rate / roof) : no_cell();
}

std::string roofs_text(const Roofs& roofs) {
  std::vector<std::string> parts;
  const auto add = [&](const char* what, const std::optional<Roof>& roof, const char* unit) {
    if (!roof) return;
    parts.push_back(fmt::format("{} {} ({})", what, quantity_text({roof->value, roof->range}, unit), roof->source));
  };
  add("measured", roofs.compute, roofs.unit);
  add("measured", roofs.memory, "B/s");
  add("sheet", roofs.sheet_compute, roofs.unit);
  add("sheet", roofs.sheet_memory, "B/s");
  if (parts.empty()) return "No known roof: add the families peak and memory to the plan.";
  return fmt::format("Roofs: {}.", fmt::join(parts, "; "));
}

Table dot_table(const std::vector<Dot>& dots, const Roofs& roofs, const std::string& id) {
  Table table{id,
              "",
              {{"case"},
               right("intensity", "FLOP per byte"),
               right("rate"),
               {"bound", "bound by"},
               right("of_roof", "of the measured roof")}};
  const bool sheet = roofs.sheet_compute || roofs.sheet_memory;
  if (sheet) table.columns.push_back(right("of_sheet", "of the sheet's roof"));
  const bool both = roofs.compute && roofs.memory;
  for (const Dot& dot : dots) {
    if (table.rows.size() == max_rows) break;
    const bool memory = both && roofs.memory->value * dot.intensity < roofs.compute->value;
    std::vector<Cell> row{case_cell(*dot.entry->record, dot.entry->anchor()), quantity_cell({dot.intensity}, "FLOP/B"),
                          quantity_cell({dot.rate, dot.range}, roofs.unit),
                          both ? Cell{memory ? "memory" : "compute", nullptr} : no_cell(),
                          of_roof_cell(dot.rate, under(roofs.compute, roofs.memory, dot.intensity))};
    if (sheet) row.push_back(of_roof_cell(dot.rate, under(roofs.sheet_compute, roofs.sheet_memory, dot.intensity)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Figure figure_of(const std::vector<Dot>& dots, const Roofs& roofs, const std::string& id, const std::string& title) {
  Figure figure{id, title, "", {"arithmetic intensity", "FLOP/B", true}, {"rate", roofs.unit, true}, {}};
  double from = dots.front().intensity, to = from;
  for (const Dot& dot : dots) {
    from = std::min(from, dot.intensity);
    to = std::max(to, dot.intensity);
  }
  from /= 2;
  to *= 2;
  if (roofs.compute || roofs.memory)
    figure.curves.push_back(roof_curve("measured roof", roofs.compute, roofs.memory, from, to));
  if (roofs.sheet_compute || roofs.sheet_memory)
    figure.curves.push_back(roof_curve("sheet's roof", roofs.sheet_compute, roofs.sheet_memory, from, to));
  std::vector<std::string> parts;
  for (const auto& [kind, name] :
       {std::pair{Kind::gemm, "GEMM"}, {Kind::memory, "memory (f64 elements)"}, {Kind::training, "training steps"}}) {
    Curve curve{name, Mark::points, {}};
    const Dot* best = nullptr;
    for (const Dot& dot : dots) {
      if (dot.kind != kind) continue;
      curve.points.push_back({dot.intensity, dot.rate, dot.range, case_title(*dot.entry->record)});
      if (!best || dot.rate > best->rate) best = &dot;
    }
    if (!best) continue;
    parts.push_back(fmt::format("{}: {}, up to {} at {:.3g} FLOP per byte", name, plural(curve.points.size(), "point"),
                                format_quantity(best->rate, roofs.unit), best->intensity));
    figure.curves.push_back(std::move(curve));
  }
  figure.alt = fmt::format("{}. {} {}.", title, roofs_text(roofs), fmt::join(parts, "; "));
  return figure;
}

// Relative half widths add in quadrature (first-order propagation of independent errors).
std::optional<Interval> quotient_range(const Metric& over, const Roof& under, double value) {
  if (!over.ci95 || !under.range) return std::nullopt;
  const double a = *half_width(over) / *over.value;
  const double b = *half_width({under.value, under.range}) / under.value;
  const double half = std::hypot(a, b) * value;
  return Interval{value - half, value + half};
}

// MFU = model FLOP/s / peak (Chowdhery et al. 2022, PaLM, appendix B), per unit. Two peaks: the best GEMM of the same
// run, dtype and device kind, and the sheet's.
std::optional<Section> mfu_section(const RunSet& runs, const std::vector<MachineRuns>& machines,
                                   std::span<const HardwareSheet> sheets) {
  Table table{"mfu",
              "",
              {{"case"},
               right("model_flops", "model FLOPs"),
               {"gemm", "best GEMM of the run"},
               right("gemm_rate", "its rate"),
               right("mfu_gemm", "MFU of that"),
               right("sheet", "sheet's peak"),
               right("mfu_sheet", "MFU of the sheet")}};
  std::set<std::string> formulas, sources;
  bool lacks = false;
  for (const MachineRuns& machine : machines) {
    for (const CaseRuns& one : machine.cases) {
      const Entry& entry = one.newest();
      const Record& record = *entry.record;
      const Metric* rate = find_metric(record, "model_flops");
      if (!is_training(record) || !rate || *rate->value <= 0 || !usable(record) || table.rows.size() == max_rows)
        continue;
      const std::string dtype = param_text(record, "precision");
      std::vector<const Entry*> same;
      for (const Entry& other : runs.entries_of(entry.run_index)) same.push_back(&other);
      const auto gemm = best_gemm(same, record.device, dtype);
      const RunData& run = *entry.run;
      auto sheet = recorded_peak(record);
      if (!sheet) sheet = sheet_compute(sheet_of(sheets, run, record), run, record.device, dtype);
      const double mine = *rate->value / units_of(record, true);
      const std::string title = machines.size() > 1 ? case_title(record) + " – " + machine.name : case_title(record);
      std::vector<Cell> row{{title, record.key, Tone::plain, entry.anchor()},
                            quantity_cell({mine, scaled(rate->ci95, 1 / units_of(record, true))}, "FLOP/s")};
      const Cell none = no_cell();
      if (gemm) {
        const double mfu = mine / gemm->value;
        const auto range = quotient_range(*rate, *gemm, mfu);
        row.push_back({gemm->source, gemm->entry->record->key, Tone::plain, gemm->entry->anchor()});
        row.push_back(quantity_cell({gemm->value, gemm->range}, "FLOP/s"));
        const double half = range ? (range->high - range->low) / 2 : 0;
        const bool usable = half <= max_usable_half * mfu;
        Cell cell{!usable ? precision_text(half / mfu)
                  : range ? fmt::format("{} ± {}", format_percent(mfu), format_percent(half))
                          : format_percent(mfu),
                  {{"value", mfu}, {"unit", "1"}, {"ci95", interval_json(range)}},
                  usable ? Tone::plain : Tone::warn};
        cell.sort = mfu;
        row.push_back(std::move(cell));
      } else {
        lacks = true;
        row.push_back({fmt::format("no {} GEMM in this run", dtype), nullptr, Tone::faint});
        row.insert(row.end(), 2, none);
      }
      row.push_back(sheet ? quantity_cell({sheet->value}, "FLOP/s") : none);
      row.push_back(sheet ? of_roof_cell(mine, sheet->value) : none);
      if (sheet) sources.insert(sheet->source);
      if (const auto formula = record.attribute("formula"))
        formulas.insert(param_text(record, "model") + ", " + *formula);
      table.rows.push_back(std::move(row));
    }
  }
  if (table.rows.empty()) return std::nullopt;
  Section section{"mfu", "Model FLOPs utilisation", {}, false};
  section.blocks.push_back(
      Text{"MFU = model FLOP/s / peak (Chowdhery et al. 2022), per GPU or per host's cores; recomputation and look-ups "
           "do not "
           "count. Two peaks: the best GEMM of the same run and precision, and that of the hardware sheet."});
  section.blocks.push_back(std::move(table));
  if (lacks)
    section.blocks.push_back(Text{"Without a GEMM in the run: add the family gemm with the same dtype to the plan."});
  List list{"formulas", {}};
  for (const std::string& formula : formulas) list.items.push_back("model FLOPs of " + formula);
  for (const std::string& source : sources) list.items.push_back("sheet's peak: " + source);
  if (!list.items.empty()) section.blocks.push_back(std::move(list));
  return section;
}

}  // namespace

std::vector<Section> roofline_sections(const RunSet& runs) {
  std::vector<Section> sections;
  const std::vector<HardwareSheet>& sheets = shipped_hardware();
  const std::vector<MachineRuns>& machines = by_machine(runs);
  Section section{"roofline", "Rooflines", {}, false};
  std::size_t drawn = 0;
  for (const MachineRuns& machine : machines) {
    if (drawn == max_machines) break;
    std::vector<const Entry*> entries;
    for (const CaseRuns& one : machine.cases)
      if (usable(*one.newest().record)) entries.push_back(&one.newest());
    std::set<std::pair<std::string, std::string>> classes;  // device kind, dtype
    for (const Entry* entry : entries) {
      const Record& record = *entry->record;
      if (record.family == "gemm") classes.insert({record.device, param_text(record, "dtype")});
      if (is_training(record)) classes.insert({record.device, param_text(record, "precision")});
    }
    bool any = false;
    for (const auto& [device, dtype] : classes) {
      std::vector<Dot> dots;
      const Entry* first = nullptr;
      // Whether all cores ran loops over memory: one core then has a roof of its own.
      const bool whole = std::ranges::any_of(entries, [](const Entry* entry) {
        return entry->record->family == "memory" && param_text(*entry->record, "threads") == "all";
      });
      for (const Entry* entry : entries) {
        if (entry->record->device != device) continue;
        if (const Record& one = *entry->record;
            one.family == "memory" && ((whole && param_text(one, "threads") == "core") || !shows_memory(entries, one)))
          continue;
        const auto dot = dot_of(*entry, dtype);
        if (!dot) continue;
        dots.push_back(*dot);
        if (!first && dot->kind != Kind::memory) first = entry;
      }
      if (!first) continue;
      std::ranges::stable_sort(dots, [](const Dot& a, const Dot& b) {
        return std::tuple(a.kind, a.intensity, a.entry->record->key) <
               std::tuple(b.kind, b.intensity, b.entry->record->key);
      });
      Roofs roofs{measured_compute(entries, device, dtype),
                  measured_memory(entries, device),
                  {},
                  {},
                  dtype == "int8" ? "OP/s" : "FLOP/s"};
      const HardwareSheet* sheet = sheet_of(sheets, *first->run, *first->record);
      for (const Dot& dot : dots)
        if (!roofs.sheet_compute && dot.kind == Kind::training) roofs.sheet_compute = recorded_peak(*dot.entry->record);
      if (!roofs.sheet_compute) roofs.sheet_compute = sheet_compute(sheet, *first->run, device, dtype);
      roofs.sheet_memory = sheet_memory(sheet, *first->run, device);
      const std::string id = fmt::format("roofline-{}-{}-{}", drawn + 1, device, dtype);
      std::string title = fmt::format("Roofline, {} {}", device, dtype);
      if (machines.size() > 1) title += ", " + machine.name;
      section.blocks.push_back(figure_of(dots, roofs, id, title));
      section.blocks.push_back(Text{roofs_text(roofs)});
      section.blocks.push_back(dot_table(dots, roofs, id + "-table"));
      any = true;
    }
    drawn += any;
  }
  if (!section.blocks.empty()) {
    section.blocks.insert(
        section.blocks.begin(),
        Text{
            "Rate over arithmetic intensity (Williams et al. 2009), per GPU or per host's cores. GEMM: 2mnk over the "
            "bytes "
            "of A, B and C, each moved once. Memory: STREAM's operations over the bytes it counts (copy and write have "
            "none). Training: model FLOPs of a step over its planned bytes, each counted once: an upper bound."});
    sections.push_back(std::move(section));
  }
  if (auto mfu = mfu_section(runs, machines, sheets)) sections.push_back(std::move(*mfu));
  return sections;
}

}  // namespace assay::report
