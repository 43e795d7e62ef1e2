// Reads a record directly from its text, without a tree; values that many records share are stored once.
#include "harness/core/error.h"
#include "harness/record/json_reader.h"
#include "harness/record/json_scanner.h"
#include "harness/record/record.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

namespace assay {

namespace {

using Scan = JsonScanner;

// Each of these keeps the default if the value is null.

void read(Scan& scan, std::string& to) {
  if (!scan.null()) to = scan.string();
}

void read(Scan& scan, bool& to) {
  if (!scan.null()) to = scan.boolean();
}

void read(Scan& scan, std::optional<double>& to) {
  if (!scan.null()) to = scan.number().real;
}

std::uint64_t magnitude(Scan& scan, const char* wanted, bool& negative) {
  const Scan::Number number = scan.number(wanted);
  if (!number.integer) throw Mismatch{"", std::string("not ") + wanted};
  negative = number.negative && number.magnitude > 0;
  return number.magnitude;
}

void read(Scan& scan, std::uint64_t& to) {
  if (scan.null()) return;
  bool negative = false;
  const std::uint64_t value = magnitude(scan, "an integer from 0 on", negative);
  if (negative) throw Mismatch{"", "not an integer from 0 on"};
  to = value;
}

void read(Scan& scan, std::int64_t& to) {
  if (scan.null()) return;
  bool negative = false;
  const std::uint64_t value = magnitude(scan, "an integer", negative);
  if (!negative && value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    throw Mismatch{"", "not an integer of 64 bits"};
  to = static_cast<std::int64_t>(negative ? 0 - value : value);
}

void read(Scan& scan, int& to) {
  std::int64_t value = to;
  read(scan, value);
  if (value < 0 || value > std::numeric_limits<int>::max()) throw Mismatch{"", "not an integer of 31 bits"};
  to = static_cast<int>(value);
}

void read(Scan& scan, std::optional<int>& to) {
  if (scan.null()) return;
  int value = 0;
  read(scan, value);
  to = value;
}

// Nulls within the list become NaN. One buffer per thread, so that lists allocate only what they need.
std::vector<double>& buffer() {
  thread_local std::vector<double> values;
  values.clear();
  return values;
}

const std::vector<double>& numbers(Scan& scan) {
  constexpr const char* wanted = "a list of numbers";
  std::vector<double>& values = buffer();
  scan.elements(wanted, [&] {
    values.push_back(scan.null() ? std::numeric_limits<double>::quiet_NaN() : scan.number(wanted).real);
  });
  return values;
}

void read(Scan& scan, std::vector<double>& to) {
  if (scan.null()) return;
  const std::vector<double>& values = numbers(scan);
  to.assign(values.begin(), values.end());
}

void read(Scan& scan, std::vector<std::optional<double>>& to) {
  if (scan.null()) return;
  const std::vector<double>& values = numbers(scan);
  to.clear();
  to.reserve(values.size());
  for (const double value : values) to.push_back(std::isnan(value) ? std::nullopt : std::optional(value));
}

void read(Scan& scan, std::vector<std::string>& to) {
  if (scan.null()) return;
  constexpr const char* wanted = "a list of strings";
  to.clear();
  scan.elements(wanted, [&] { to.emplace_back(scan.string(wanted)); });
  to.shrink_to_fit();
}

// Calls each(name) for every member of an object; it returns whether it read the value.
template <typename Each>
void object(Scan& scan, Each each) {
  if (scan.null()) return;
  scan.members([&](std::string_view name) {
    if (!each(name)) scan.skip();
  });
}

void read(Scan& scan, Attributes& attributes) {
  object(scan, [&](std::string_view name) { return read(scan, attributes[std::string(name)]), true; });
}

// A list of objects, `one(name, element)` for each member.
template <typename T, typename One>
void objects(Scan& scan, std::vector<T>& to, One one) {
  if (scan.null()) return;
  to.clear();
  scan.elements("a list", [&] {
    T& element = to.emplace_back();
    try {
      scan.members([&](std::string_view name) {
        if (!one(name, element)) scan.skip();
      });
    } catch (Mismatch& mismatch) {
      mismatch.inside("[" + std::to_string(to.size() - 1) + "]");
      throw;
    }
  });
  to.shrink_to_fit();
}

// Reads the value into `to` when the name is this one.
template <typename T>
bool is(std::string_view name, std::string_view wanted, Scan& scan, T& to) {
  if (name != wanted) return false;
  read(scan, to);
  return true;
}

Status status_from(std::string_view name) {
  for (const Status status : {Status::ok, Status::skipped, Status::failed, Status::error})
    if (name_of(status) == name) return status;
  throw Mismatch{"", fmt::format("'{}' is none of ok, skipped, failed, error", name)};
}

bool metric_member(Scan& scan, std::string_view name, Metric& metric) {
  if (name == "ci95") {
    if (scan.null()) return true;
    const std::vector<double>& bounds = numbers(scan);
    if (bounds.size() == 2 && std::isfinite(bounds[0]) && std::isfinite(bounds[1]))
      metric.ci95 = Interval{bounds[0], bounds[1]};
    return true;
  }
  if (name == "better") {
    if (!scan.null()) metric.better = scan.string() == "lower" ? Better::lower : Better::higher;
    return true;
  }
  return is(name, "name", scan, metric.name) || is(name, "value", scan, metric.value) ||
         is(name, "unit", scan, metric.unit) || is(name, "of_peak", scan, metric.of_peak) ||
         is(name, "reference", scan, metric.reference);
}

void read(Scan& scan, Samples& samples) {
  bool counted = false;
  object(scan, [&](std::string_view name) {
    if (name == "series") {
      if (!scan.null()) samples.series = std::string(scan.string());
      return true;
    }
    if (name == "disturbed") {
      if (scan.null()) return true;
      const std::vector<double>& indices = numbers(scan);
      for (const double index : indices)
        if (index >= 0 && index <= std::numeric_limits<int>::max())
          samples.disturbed.push_back(static_cast<int>(index));
      samples.disturbed.shrink_to_fit();
      return true;
    }
    counted |= name == "count" && scan.peek() != 'n';
    return is(name, "unit", scan, samples.unit) || is(name, "values", scan, samples.values) ||
           is(name, "at", scan, samples.at) || is(name, "count", scan, samples.count) ||
           is(name, "repetitions", scan, samples.repetitions) || is(name, "stopped_by", scan, samples.stopped_by) ||
           is(name, "first_touch", scan, samples.first_touch);
  });
  if (!counted) samples.count = static_cast<std::int64_t>(samples.values.size());
}

void read(Scan& scan, std::map<std::string, Series>& telemetry) {
  object(scan, [&](std::string_view sensor) {
    Series& series = telemetry[std::string(sensor)];
    object(scan, [&](std::string_view name) {
      return is(name, "unit", scan, series.unit) || is(name, "at", scan, series.at) ||
             is(name, "values", scan, series.values);
    });
    return true;
  });
}

void read(Scan& scan, std::vector<int>& to) {
  if (scan.null()) return;
  to.clear();
  scan.elements("a list of integers", [&] { read(scan, to.emplace_back()); });
}

void read(Scan& scan, std::optional<Matrix>& to) {
  if (scan.null()) return;
  Matrix matrix;
  std::size_t rows = 0, columns = 0;
  bool even = true;
  object(scan, [&](std::string_view name) {
    if (name == "better") {
      if (!scan.null()) matrix.better = scan.string() == "lower" ? Better::lower : Better::higher;
      return true;
    }
    if (name == "values") {
      scan.elements("a list of lists of numbers", [&] {
        const std::vector<double>& row = numbers(scan);
        even = even && (rows == 0 || row.size() == columns);
        columns = row.size();
        ++rows;
        matrix.values.insert(matrix.values.end(), row.begin(), row.end());
      });
      return true;
    }
    if (name == "ranks") return read(scan, matrix.ranks), true;
    return is(name, "metric", scan, matrix.metric) || is(name, "unit", scan, matrix.unit);
  });
  if (!even || rows != matrix.ranks.size() || (rows > 0 && columns != rows))
    throw Mismatch{"values", "not a row and a column for each rank"};
  to = std::move(matrix);
}

// An object of any members.
void read(Scan& scan, SharedJson& to, JsonPool& pool) {
  if (scan.peek() != '{' && scan.peek() != 'n') throw Mismatch{"", "not an object"};
  const std::string_view text = scan.skip();
  to = pool.get(text == "null" ? "{}" : text);
}

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
    return std::find(names.begin(), names.end(), name) != names.end();
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

// Of text whose other members may be of any type.
std::int64_t schema_of(std::string_view text) {
  std::int64_t schema = 0;
  Scan scan(text);
  object(scan, [&](std::string_view name) { return is(name, "schema", scan, schema); });
  return schema;
}

Record read_record(std::string_view text, JsonPool& pool) {
  Scan scan(text);
  Record record;
  std::int64_t schema = 0;
  record.params = pool.get("{}");
  record.protocol = pool.get("{}");
  const auto member = [&](std::string_view name) {
    if (name == "schema") return read(scan, schema), true;
    if (name == "params") return read(scan, record.params, pool), true;
    if (name == "protocol") return read(scan, record.protocol, pool), true;
    if (name == "samples") return read(scan, record.samples), true;
    if (name == "telemetry") return read(scan, record.telemetry), true;
    if (name == "matrix") return read(scan, record.matrix), true;
    if (name == "status") {
      if (!scan.null()) record.status = status_from(scan.string());
      return true;
    }
    if (name == "seconds") {
      if (!scan.null()) record.seconds = scan.number().real;
      return true;
    }
    if (name == "world") {
      object(scan, [&](std::string_view part) {
        return is(part, "ranks", scan, record.world_ranks) || is(part, "nodes", scan, record.world_nodes);
      });
      return true;
    }
    if (name == "ranks") {
      objects(scan, record.ranks, [&](std::string_view part, RankResult& rank) {
        return is(part, "rank", scan, rank.rank) || is(part, "host", scan, rank.host) ||
               is(part, "device", scan, rank.device) || is(part, "median", scan, rank.median) ||
               is(part, "uuid", scan, rank.uuid) || is(part, "pci", scan, rank.pci) ||
               is(part, "cpus", scan, rank.cpus) || is(part, "numa_node", scan, rank.numa_node) ||
               is(part, "pace", scan, rank.pace);
      });
      return true;
    }
    if (name == "metrics") {
      objects(scan, record.metrics,
              [&](std::string_view part, Metric& metric) { return metric_member(scan, part, metric); });
      return true;
    }
    if (name == "checks") {
      objects(scan, record.checks, [&](std::string_view part, Check& check) {
        return is(part, "name", scan, check.name) || is(part, "passed", scan, check.passed) ||
               is(part, "value", scan, check.value) || is(part, "limit", scan, check.limit) ||
               is(part, "detail", scan, check.detail);
      });
      return true;
    }
    if (name == "conditions") return read(scan, record.conditions), true;
    if (name == "choices") return read(scan, record.choices), true;
    if (name == "labels") return read(scan, record.labels), true;
    if (name == "spans") {
      object(scan, [&](std::string_view span) {
        std::optional<double> seconds;
        read(scan, seconds);
        if (seconds) record.spans.emplace_back(span, *seconds);
        return true;
      });
      return true;
    }
    return is(name, "key", scan, record.key) || is(name, "family", scan, record.family) ||
           is(name, "seed", scan, record.seed) || is(name, "attempt", scan, record.attempt) ||
           is(name, "device", scan, record.device) || is(name, "reason", scan, record.reason) ||
           is(name, "comparable", scan, record.comparable) || is(name, "flags", scan, record.flags) ||
           is(name, "started", scan, record.started) || is(name, "log", scan, record.log);
  };
  scan.members([&](std::string_view name) {
    if (!member(name)) scan.skip();
  });
  scan.finish();
  check_schema(schema);
  record.schema = static_cast<int>(schema);
  if (record.schema == 1) sort_schema1_labels(record);
  record.spans.shrink_to_fit();
  return record;
}

}  // namespace

Record Record::from_text(std::string_view text, JsonPool& pool) {
  try {
    return read_record(text, pool);
  } catch (const Mismatch& mismatch) {
    // Report text that is not JSON, or of an unknown schema with other types, as such.
    (void)parse_untrusted(text);
    try {
      check_schema(schema_of(text));
    } catch (const Mismatch&) {
    }
    throw Error(mismatch.text());
  }
}

Record Record::from_json(const Json& json) {
  JsonPool pool;
  return from_text(dump_line(json), pool);
}

const SharedJson& JsonPool::get(std::string_view text) {
  const auto known = values_.find(text);
  if (known != values_.end()) return known->second;
  SharedJson value;
  value = parse_untrusted(text);
  return values_.emplace(text, std::move(value)).first->second;
}

}  // namespace assay
