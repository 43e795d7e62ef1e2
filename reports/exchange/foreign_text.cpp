// Tables of text, which people write by hand: every mistake is named with its place.
#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/runs/csv.h"
#include "reports/exchange/foreign.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::report {

namespace {

double real(const std::string& text, const std::string& place) {
  try {
    return parse_real(text);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", place, error.what()));
  }
}

}  // namespace

ForeignFile read_csv(const std::string& text, const std::string& file) {
  static const std::vector<std::string> needed = {"time", "machine", "case", "metric", "unit", "better", "value"};
  // What `assay export csv` writes besides.
  static const std::vector<std::string> known = {"time",  "machine", "case",   "metric",     "unit",    "better",
                                                 "value", "commit",  "low",    "high",       "of_peak", "device",
                                                 "ranks", "host",    "status", "comparable", "reason"};
  const std::vector<CsvRow> rows = parse_csv(text, file);
  if (rows.empty()) throw UsageError(fmt::format("{}: is empty", file));
  const std::vector<std::string>& columns = rows.front().fields;
  for (const std::string& column : columns)
    if (!column.starts_with("fact.") && std::find(known.begin(), known.end(), column) == known.end())
      throw UsageError(fmt::format("{}: line {}: unknown column {}{}", file, rows.front().line, in_quotes(column),
                                   suggestion(column, known)));
  for (const std::string& column : needed)
    if (std::find(columns.begin(), columns.end(), column) == columns.end())
      throw UsageError(fmt::format("{}: line {}: no column {}", file, rows.front().line, in_quotes(column)));
  FigureCollector figures;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::string place = fmt::format("{}: line {}", file, rows[i].line);
    if (rows[i].fields.size() != columns.size())
      throw UsageError(fmt::format("{}: {} fields for {} columns", place, rows[i].fields.size(), columns.size()));
    std::map<std::string, std::string> fields;
    ForeignFigure figure;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      fields[columns[c]] = rows[i].fields[c];
      if (columns[c].starts_with("fact.") && !rows[i].fields[c].empty())
        figure.facts[columns[c].substr(5)] = rows[i].fields[c];
    }
    if (fields["case"].empty()) throw UsageError(place + ": no case");
    figure.time = fields["time"];
    figure.machine = fields["machine"];
    figure.commit = fields["commit"];
    figure.name = fields["case"];
    const auto status = from_word<Status>(fields["status"].empty() ? "ok" : fields["status"]);
    if (!status)
      throw UsageError(
          fmt::format("{}: status is {}: use ok, failed, error or skipped", place, in_quotes(fields["status"])));
    figure.status = *status;
    figure.reason = fields["reason"];
    figure.comparable = fields["comparable"] != "false";
    // A row without a metric is a case that only held or did not; one without a value is unknown.
    if (fields["value"].empty() && figure.status == Status::ok && !fields["metric"].empty()) {
      figures.not_read(fmt::format("line {}", rows[i].line), fields["case"] + " has no value");
      continue;
    }
    if (fields["value"].empty()) {
      figures.add(figure);
      continue;
    }
    figure.metric = fields["metric"];
    figure.unit = fields["unit"];
    figure.better = better_from(fields["better"], place);
    figures.add(figure, real(fields["value"], place + ": value"));
  }
  return figures.take();
}

}  // namespace assay::report
