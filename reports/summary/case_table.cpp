#include "reports/summary/cells.h"

#include "harness/core/units.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

namespace assay::report {

namespace {

// Remarks that a reader of the figure must see.
std::string remarks(const Record& record, const Metric* metric) {
  std::vector<std::string> parts;
  if (record.family == "collective" && metric) parts.push_back(metric->name);
  if (!record.samples.disturbed.empty()) parts.push_back(fmt::format("{} disturbed", record.samples.disturbed.size()));
  for (const std::string& flag : record.flags) parts.push_back(flag);
  if (!record.comparable) parts.push_back("not comparable");
  if (record.attempt > 1) parts.push_back(fmt::format("attempt {}", record.attempt));
  return parts.empty() ? "" : fmt::format(" ({})", fmt::join(parts, "; "));
}

}  // namespace

Cell no_cell() { return {"–", nullptr, Tone::faint}; }

Cell figure_cell(const Metric* metric) {
  if (!metric || !metric->value) return no_cell();
  Cell cell{figure_text(*metric, *metric->value),
            {{"metric", metric->name}, {"value", *metric->value}, {"unit", metric->unit}},
            Tone::plain};
  cell.sort = *metric->value;
  return cell;
}

Cell interval_cell(const Metric* metric) {
  const auto half = metric ? half_width(*metric) : std::nullopt;
  if (!half || !std::isfinite(*half / *metric->value)) return no_cell();
  const double share = *half / std::abs(*metric->value);
  const double percent = 100 * share;
  Cell cell{fmt::format("± {:.{}f} %", percent, percent < 10 ? 1 : 0), interval_json(metric->ci95),
            share > 0.05 ? Tone::warn : Tone::plain};
  cell.sort = share;
  return cell;
}

Cell peak_cell(const Metric* metric) {
  if (!metric || !metric->of_peak) return no_cell();
  Cell cell{format_percent(*metric->of_peak), *metric->of_peak};
  cell.sort = *metric->of_peak;
  return cell;
}

Cell reference_cell(const Metric* metric) {
  if (!metric || !metric->value || !metric->reference) return no_cell();
  const std::string normal = format_quantity(*metric->reference, metric->unit);
  const double share = *metric->value / *metric->reference;
  Cell cell{std::isfinite(share) ? fmt::format("{} of {}", format_percent(share), normal) : normal,
            {{"value", *metric->reference}, {"unit", metric->unit}}};
  if (std::isfinite(share)) cell.sort = share;
  return cell;
}

Cell verdict_cell(const Record& record, const Metric* metric) {
  const Json data = {{"status", std::string(name_of(record.status))}, {"reason", record.reason}};
  switch (record.status) {
    case Status::ok: return {"ok" + remarks(record, metric), data, Tone::good};
    case Status::failed: return {"FAILED" + remarks(record, metric), data, Tone::bad};
    case Status::error: return {"ERROR" + remarks(record, metric), data, Tone::bad};
    case Status::skipped: break;
  }
  return {"skipped: " + first_line(record.reason), data, Tone::faint};
}

std::vector<Column> case_columns(const CaseColumns& wanted) {
  std::vector<Column> columns{{"case", "case"},
                              {"median", "figure", Align::right},
                              {"ci95", "95 %", Align::right},
                              {"of_peak", "of peak", Align::right}};
  if (wanted.reference) columns.push_back({"reference", "of reference", Align::right});
  if (wanted.runs) {
    columns.push_back({"runs", "runs", Align::right});
    columns.push_back({"range", "least – most", Align::right});
  }
  columns.push_back({"verdict", "verdict"});
  return columns;
}

std::vector<Cell> case_row(const CaseRow& row, const CaseColumns& wanted) {
  const Record& record = *row.entry->record;
  std::vector<Cell> cells{
      {row.title, record.key}, figure_cell(row.metric), interval_cell(row.metric), peak_cell(row.metric)};
  cells[0].link = row.entry->anchor();
  if (wanted.reference) cells.push_back(reference_cell(row.metric));
  if (wanted.runs) {
    Cell count{std::to_string(row.runs), row.runs};
    count.sort = static_cast<double>(row.runs);
    cells.push_back(std::move(count));
    cells.push_back(row.range && row.metric ? Cell{fmt::format("{} – {}", figure_text(*row.metric, row.range->low),
                                                               figure_text(*row.metric, row.range->high)),
                                                   interval_json(row.range)}
                                            : no_cell());
  }
  cells.push_back(verdict_cell(record, row.metric));
  return cells;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string plural(std::size_t n, const char* word) { return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s"); }

}  // namespace assay::report
