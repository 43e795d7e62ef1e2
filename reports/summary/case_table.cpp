#include "reports/summary/case_table.h"

#include "harness/core/units.h"

#include <fmt/format.h>

namespace assay::report {

namespace {

Cell published_cell(const std::vector<const PublishedFigure*>& published) {
  if (published.empty()) return {"–", Json::array(), Tone::faint};
  Cell cell{"", Json::array()};
  for (const PublishedFigure* one : published) {
    cell.text += (cell.text.empty() ? "" : "; ") + published_text(*one);
    cell.data.push_back(published_json(*one));
  }
  return cell;
}

}  // namespace

std::vector<Column> case_columns(const CaseColumns& wanted) {
  std::vector<Column> columns{{"case"}, right("median", "figure"), right("ci95", "95 %"), right("of_peak", "of peak")};
  if (wanted.usual) columns.push_back(right("usual"));
  if (wanted.such) columns.push_back({"such", "runs of such machines"});
  if (wanted.reference) columns.push_back(right("reference", "of reference"));
  if (wanted.runs) {
    columns.push_back(right("runs"));
    columns.push_back(right("range", "min – max"));
  }
  if (wanted.published) columns.push_back({"published", "published by"});
  columns.push_back({"verdict", "verdict"});
  return columns;
}

std::vector<Cell> case_row(const CaseRow& row, const CaseColumns& wanted) {
  const Record& record = *row.entry->record;
  const Metric* metric = row.metric;
  std::vector<Cell> cells{{row.title, record.key, Tone::plain, row.entry->anchor()},
                          figure_cell(metric),
                          precision_cell(metric),
                          no_cell()};
  const BoundShare scale = metric ? bound_share_of(*row.entry, *metric) : BoundShare{};
  if (scale.share) {
    cells[3] = share_cell(*scale.share);
    if (scale.of_memory) cells[3].text += " (memory)";
    if (scale.unusual()) cells[3].tone = Tone::warn;
  }
  if (row.amber) cells[1].tone = Tone::warn;
  if (wanted.usual)
    cells.push_back(scale.share && scale.usual ? Cell{fmt::format("{} – {}", format_percent(scale.usual->share.low),
                                                                  format_percent(scale.usual->share.high)),
                                                      {{"low", scale.usual->share.low},
                                                       {"high", scale.usual->share.high},
                                                       {"source", scale.usual->source}}}
                                               : no_cell());
  if (wanted.such) cells.push_back(row.such.empty() ? no_cell() : text_cell(row.such));
  if (wanted.reference) cells.push_back(reference_cell(metric));
  if (wanted.runs) {
    cells.push_back(count_cell(row.runs));
    cells.push_back(row.range && metric ? Cell{fmt::format("{} – {}", figure_text(*metric, row.range->low),
                                                           figure_text(*metric, row.range->high)),
                                               interval_json(row.range)}
                                        : no_cell());
  }
  if (wanted.published) cells.push_back(published_cell(row.published));
  cells.push_back(verdict_cell(record, metric));
  // A correct answer that is far below what the parts allow is no praise.
  if (record.status == Status::ok && scale.low()) {
    cells.back().tone = scale.unusual() ? Tone::warn : Tone::plain;
    if (scale.unusual()) cells.back().text.replace(0, 2, "low");
  }
  return cells;
}

}  // namespace assay::report
