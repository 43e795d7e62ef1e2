// Tables and lines of text, which people write by hand: every mistake is named with its place.
#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "reports/data/csv.h"
#include "reports/exchange/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string_view>

namespace assay::report {

namespace {

double real(const std::string& text, const std::string& place) {
  try {
    return parse_real(text);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", place, error.what()));
  }
}

Better better_from(const std::string& word, const std::string& place) {
  if (word == "higher") return Better::higher;
  if (word == "lower") return Better::lower;
  throw UsageError(fmt::format("{}: better is {}: use higher or lower", place, in_quotes(word)));
}

}  // namespace

std::vector<ForeignFigure> read_csv(const std::string& text, const std::string& file) {
  static const std::vector<std::string> needed = {"time", "machine", "case", "metric", "unit", "better", "value"};
  // What `assay export csv` writes besides.
  static const std::vector<std::string> known = {"time",  "machine", "case",   "metric",    "unit",    "better",
                                                 "value", "commit",  "low",    "high",      "of_peak", "device",
                                                 "ranks", "host",    "status", "comparable"};
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
  std::vector<ForeignFigure> figures;
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
    if (fields["value"].empty()) continue;  // unknown
    if (fields["case"].empty()) throw UsageError(place + ": no case");
    figure.time = fields["time"];
    figure.machine = fields["machine"];
    figure.commit = fields["commit"];
    figure.name = fields["case"];
    figure.metric = fields["metric"];
    figure.unit = fields["unit"];
    figure.better = better_from(fields["better"], place);
    figure.values = {real(fields["value"], place + ": value")};
    figures.push_back(std::move(figure));
  }
  return figures;
}

std::vector<ForeignFigure> read_lines(const std::string& text, const std::string& file) {
  std::vector<ForeignFigure> figures;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string place = fmt::format("{}: line {}", file, number);
    std::istringstream words(line);
    std::string name, value, unit, better, more;
    if (!(words >> name) || name.front() == '#') continue;
    if (!(words >> value >> unit >> better) || words >> more)
      throw UsageError(place + ": is not \"name value unit better\"");
    ForeignFigure figure;
    figure.name = name;
    figure.metric = "value";
    figure.unit = unit;
    figure.better = better_from(better, place);
    figure.values = {real(value, place + ": value")};
    // A name that comes again is another sample.
    const auto same = std::find_if(figures.begin(), figures.end(),
                                   [&](const ForeignFigure& one) { return one.name == name && one.unit == unit; });
    if (same != figures.end())
      same->values.push_back(figure.values.front());
    else
      figures.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace assay::report
