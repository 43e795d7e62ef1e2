// Records to JSON and back, in the form that docs/design.md lists; schema 1 is read too.
#include "harness/core/error.h"
#include "harness/json/members.h"
#include "harness/record/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

namespace assay {

// The forms of single members.

Json to_json(Better better) { return word_of(better); }
void read(const JsonValue& value, Better& to) { to = value.string() == "lower" ? Better::lower : Better::higher; }

Json to_json(Status status) { return name_of(status); }
void read(const JsonValue& value, Status& to) {
  const auto status = from_word<Status>(value.string());
  if (!status) throw Mismatch{"", fmt::format("'{}' is none of {}", value.string(), fmt::join(words(to), ", "))};
  to = *status;
}

namespace {

bool finite(const Interval& interval) { return std::isfinite(interval.low) && std::isfinite(interval.high); }

// Five digits: hundreds of hosts make a hundred thousand figures of one line.
double rounded(double value) { return std::isfinite(value) ? std::stod(fmt::format("{:.5g}", value)) : value; }

struct MatrixForm {
  std::string metric, unit;
  Better better = Better::higher;
  std::vector<int> ranks;
  std::vector<std::vector<double>> values;
  static void members(auto& self, auto& io) {
    io("metric", self.metric), io("unit", self.unit), io("better", self.better), io("ranks", self.ranks);
    io("values", self.values);
  }
};

}  // namespace

Json to_json(const std::optional<Interval>& interval) {
  return interval && finite(*interval) ? Json::array({interval->low, interval->high}) : Json(nullptr);
}
void read(const JsonValue& value, std::optional<Interval>& to) {
  std::vector<double> bounds;
  read_json(value, bounds);
  if (bounds.size() == 2 && finite({bounds[0], bounds[1]})) to = Interval{bounds[0], bounds[1]};
}

Json to_json(const Matrix& matrix) {
  MatrixForm form{matrix.metric, matrix.unit, matrix.better, matrix.ranks, {}};
  for (std::size_t row = 0; row < matrix.ranks.size(); ++row)
    for (std::vector<double>& figures = form.values.emplace_back(); figures.size() < matrix.ranks.size();)
      figures.push_back(rounded(matrix.at(row, figures.size())));
  return members_json(form);
}
void read(const JsonValue& value, Matrix& to) {
  MatrixForm form;
  read_members(value, form);
  const std::size_t ranks = form.ranks.size();
  if (form.values.size() != ranks ||
      std::ranges::any_of(form.values, [&](const auto& row) { return row.size() != ranks; }))
    throw Mismatch{"values", "not a row and a column for each rank"};
  to = {form.metric, form.unit, form.better, form.ranks, {}};
  for (const std::vector<double>& row : form.values) to.values.insert(to.values.end(), row.begin(), row.end());
}

void read(const JsonValue& value, Samples& to) {
  to.count = -1;
  read_members(value, to);
  if (to.count < 0) to.count = static_cast<std::int64_t>(to.values.size());
}

namespace {

// Labels of schema 1 that part nothing: they follow from the world size, are prose, or say what a trial chose.
constexpr std::array<std::string_view, 17> schema1_remarks{
    "accumulate",    "bytes_used",     "choice",       "choices",     "communication", "convergence",
    "count",         "formula",        "global_batch", "micro_batch", "note",          "peak",
    "peak_measured", "planned_memory", "redop",        "root",        "threads"};
constexpr std::array<std::string_view, 2> schema1_choices{"implementation", "isa"};

// Schema 1 has only labels. Unlisted ones (the user's among them) become conditions: they part series, but not the two
// sides of a comparison (comparable.h).
void sort_schema1_labels(Record& record) {
  record.conditions.clear();
  record.choices.clear();
  const auto within = [](const auto& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (auto label = record.labels.begin(); label != record.labels.end();) {
    const auto next = std::next(label);
    if (within(schema1_choices, label->first))
      record.choices.insert(record.labels.extract(label));
    else if (!within(schema1_remarks, label->first))
      record.conditions.insert(record.labels.extract(label));
    label = next;
  }
}

struct SchemaOnly {
  std::int64_t schema = 0;
  static void members(auto& self, auto& io) { io("schema", self.schema); }
};

}  // namespace

Json Record::to_json() const {
  Json json = members_json(*this);
  json["schema"] = record_schema;
  return json;
}

void read(const JsonValue& value, Record& to) {
  to = {};
  to.schema = 0;
  read_members(value, to);
  check_schema(to.schema);
  if (to.schema == 1) sort_schema1_labels(to);
  set_failure_from_text(to);
}

Record Record::from_text(std::string_view text, JsonPool& pool) {
  try {
    return read_text<Record>(text, &pool);
  } catch (const Error&) {
    // Members of an unknown schema may have other types: the schema is the message then.
    check_schema(read_text<SchemaOnly>(text).schema);
    throw;
  }
}

}  // namespace assay
