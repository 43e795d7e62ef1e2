// Tables of comma-separated values, which people write by hand: every mistake is named with its place. Read row by row,
// as they may be large.
#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/figures/direction.h"
#include "harness/figures/quantity.h"
#include "harness/runs/csv.h"
#include "reports/exchange/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>

namespace assay::report {

namespace {

double real(const std::string& text, const std::string& place) {
  try {
    return parse_real(text);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", place, error.what()));
  }
}

// The rows of `assay import csv`.
class CsvFigures {
 public:
  explicit CsvFigures(const ForeignInput& input) : file_(input.file), reader_(input.file, input.more) {}

  ForeignFile read() {
    CsvRow row;
    if (!reader_.next(row)) throw UsageError(fmt::format("{}: is empty", file_));
    read_header(row);
    while (reader_.next(row)) {
      const std::string place = fmt::format("{}: line {}", file_, row.line);
      if (row.fields.size() != columns_.size())
        throw UsageError(fmt::format("{}: {} fields for {} columns", place, row.fields.size(), columns_.size()));
      for (std::string& field : row.fields)
        if (const auto text = csv_value(field); text.size() < field.size()) field = std::string(text);
      read_row(row, place);
    }
    return figures_.take();
  }

 private:
  void read_header(const CsvRow& first) {
    static const std::vector<std::string> needed = {"time", "machine", "case", "metric", "unit", "better", "value"};
    // What `assay export csv` writes besides.
    static const std::vector<std::string> known = {
        "time",   "machine",    "case",   "metric",  "unit",    "better",      "value",
        "commit", "low",        "high",   "of_peak", "device",  "ranks",       "host",
        "status", "comparable", "reason", "usd",     "usd_per", "price_basis", "price_date"};
    columns_ = first.fields;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& column = columns_[i];
      if (!column.starts_with("fact.") && std::find(known.begin(), known.end(), column) == known.end())
        throw UsageError(fmt::format("{}: line {}: unknown column {}{}", file_, first.line, in_quotes(column),
                                     suggestion(column, known)));
      places_.emplace(column, i);
    }
    for (const std::string& column : needed)
      if (!places_.contains(column))
        throw UsageError(fmt::format("{}: line {}: no column {}", file_, first.line, in_quotes(column)));
  }

  const std::string& field(const CsvRow& row, const char* column) const {
    static const std::string none;
    const auto place = places_.find(column);
    return place == places_.end() ? none : row.fields[place->second];
  }

  void read_row(const CsvRow& row, const std::string& place) {
    ForeignFigure figure;
    figure.name = field(row, "case");
    if (figure.name.empty()) throw UsageError(place + ": no case");
    const std::string &status = field(row, "status"), &value = field(row, "value"), &metric = field(row, "metric");
    const auto read_status = from_word<Status>(status.empty() ? "ok" : status);
    if (!read_status)
      throw UsageError(fmt::format("{}: status is {}: use ok, failed, error or skipped", place, in_quotes(status)));
    figure.status = *read_status;
    figure.reason = field(row, "reason");
    figure.comparable = field(row, "comparable") != "false";
    if (!value.empty()) {
      figure.metric = metric, figure.unit = field(row, "unit");
      figure.better = better_from(field(row, "better"), place);
    }
    const double number = value.empty() ? 0 : real(value, place + ": value");
    const std::string &low = field(row, "low"), &high = field(row, "high");
    if (!low.empty() && !high.empty()) {
      figure.ci95 = Interval{real(low, place + ": low"), real(high, place + ": high")};
      if (figure.ci95->low > figure.ci95->high) throw UsageError(place + ": low is above high");
    }
    measured(row, place);
    figure.world = world_;
    // A row without a metric is a case that only held or did not; one without a value is unknown.
    if (!value.empty())
      figures_.add(std::move(figure), number);
    else if (figure.status == Status::ok && !metric.empty())
      figures_.not_read(fmt::format("line {}", row.line), figure.name + " has no value");
    else
      figures_.add(std::move(figure));
  }

  // Where and when: mostly as in the row before.
  void measured(const CsvRow& row, const std::string& place) {
    std::string key;
    for (const auto& [column, i] : places_)
      if (column == "time" || column == "machine" || column == "commit" || column.starts_with("fact.") ||
          column == "ranks" || column == "host" || column == "device")
        key.append(row.fields[i]).append(1, '\0');
    if (key == last_) return;
    last_ = std::move(key);
    ForeignContext about;
    about.time = figures_.time(field(row, "time"), place);
    about.machine = field(row, "machine"), about.commit = field(row, "commit");
    for (const auto& [column, i] : places_)
      if (column.starts_with("fact.") && !row.fields[i].empty()) about.facts[column.substr(5)] = row.fields[i];
    figures_.measured(about);
    set_world(row, place);
  }

  void set_world(const CsvRow& row, const std::string& place) {
    const std::string &ranks = field(row, "ranks"), &host = field(row, "host"), &device = field(row, "device");
    const double count = ranks.empty() ? 1 : real(ranks, place + ": ranks");
    if (!(count >= 1 && count <= 1e7)) throw UsageError(fmt::format("{}: ranks: {}", place, in_quotes(ranks)));
    world_.reset();
    if (count == 1 && host.empty() && (device.empty() || device == "cpu")) return;
    std::shared_ptr<const ForeignWorld>& known = worlds_[fmt::format("{}\n{}\n{}", count, host, device)];
    if (!known) {
      ForeignWorld world;
      world.ranks = static_cast<int>(count);
      if (!host.empty()) world.known.push_back({0, host, "", std::nullopt});
      if (!device.empty()) world.device = device;
      known = std::make_shared<const ForeignWorld>(std::move(world));
    }
    world_ = known;
  }

  std::string file_;
  CsvReader reader_;
  FigureCollector figures_;
  std::vector<std::string> columns_;
  std::map<std::string, std::size_t, std::less<>> places_;
  std::optional<std::string> last_;  // of measured()
  std::shared_ptr<const ForeignWorld> world_;
  std::map<std::string, std::shared_ptr<const ForeignWorld>> worlds_;
};

// The words by which a wide table calls what is no series.
enum class WideColumn { unknown, time, machine, commit, series, fact };

WideColumn wide_column(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto is = [&](std::initializer_list<const char*> words) {
    return std::find(words.begin(), words.end(), name) != words.end();
  };
  if (is({"time", "timestamp", "date", "datetime"})) return WideColumn::time;
  if (is({"machine", "host", "hostname"})) return WideColumn::machine;
  if (is({"commit", "commit_id", "commit_hash", "sha", "revision"})) return WideColumn::commit;
  return is({"branch", "version", "build", "tag"}) ? WideColumn::fact : WideColumn::unknown;
}

}  // namespace

ForeignFile read_csv(const ForeignInput& input) { return CsvFigures(input).read(); }

// A row per run and a column per series. Whether a column is a series or a fact is seen from its first cell.
ForeignFile read_otava(const ForeignInput& input) {
  std::string first;
  while (first.find('\n') == first.npos && input.more(first)) continue;
  const std::string header = first.substr(0, first.find('\n'));
  const char separator = header.find(',') != header.npos ? ',' : header.find(';') != header.npos ? ';' : '\t';
  CsvReader reader(
      input.file,
      [&](std::string& text) {
        if (first.empty()) return input.more(text);
        text += std::exchange(first, {});
        return true;
      },
      separator);
  CsvRow row;
  if (!reader.next(row)) throw UsageError(fmt::format("{}: is empty", input.file));
  const std::vector<std::string> names = row.fields;
  std::vector<WideColumn> columns;
  for (const std::string& name : names) columns.push_back(name.empty() ? WideColumn::fact : wide_column(name));
  if (std::count(columns.begin(), columns.end(), WideColumn::time) != 1)
    throw UsageError(fmt::format("{}: line {}: needs one column time, timestamp or date", input.file, row.line));
  FigureCollector figures;
  while (reader.next(row)) {
    const std::string place = fmt::format("line {}", row.line);
    if (row.fields.size() != columns.size())
      throw UsageError(
          fmt::format("{}: {}: {} fields for {} columns", input.file, place, row.fields.size(), columns.size()));
    ForeignContext about;
    std::vector<std::pair<std::size_t, double>> values;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string& cell = row.fields[i];
      if (cell.empty()) continue;
      const auto value = number_from(cell);
      if (columns[i] == WideColumn::unknown) columns[i] = value ? WideColumn::series : WideColumn::fact;
      if (columns[i] == WideColumn::time) about.time = figures.time(cell, fmt::format("{}: {}", input.file, place));
      if (columns[i] == WideColumn::machine) about.machine = cell;
      if (columns[i] == WideColumn::commit) about.commit = cell;
      if (columns[i] == WideColumn::fact && !names[i].empty()) about.facts[names[i]] = cell;
      if (columns[i] != WideColumn::series) continue;
      if (value)
        values.emplace_back(i, *value);
      else
        figures.not_read(place, fmt::format("{} is {}, not a number", names[i], in_quotes(cell)));
    }
    figures.measured(about);
    for (const auto& [i, value] : values) {
      ForeignFigure figure;
      figure.name = names[i], figure.metric = "value", figure.unit = "1";
      figure.better = guessed_better(names[i]), figure.guessed = true;
      figures.add(std::move(figure), value);
    }
  }
  return figures.take();
}

}  // namespace assay::report
