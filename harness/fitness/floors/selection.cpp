// Reads selections strictly: one without a source is refused.
#include "harness/fitness/floors/selection.h"

#include "harness/core/glob.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/fitness/floors/metric_units.h"
#include "harness/json/json.h"
#include "harness/runs/filled_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace assay::fitness {

namespace {

// "700 TFLOP/s" in base units: a number, one of k M G T P, and the unit itself.
double parse_rate(std::string_view text, const std::string& unit) {
  const auto refuse = [&] {
    throw UsageError(fmt::format("{0} is not a quantity in {1} (\"1.5 G{1}\")", in_quotes(text), one_line(unit, 40)));
  };
  const auto trim = [](std::string_view& part) {
    while (part.ends_with(' ')) part.remove_suffix(1);
  };
  std::string_view number = text;
  trim(number);
  if (!number.ends_with(unit)) refuse();
  number.remove_suffix(unit.size());
  trim(number);
  double scale = 1;
  for (const auto& [prefix, power] : {std::pair{'k', 1e3}, {'M', 1e6}, {'G', 1e9}, {'T', 1e12}, {'P', 1e15}})
    if (number.ends_with(prefix)) {
      scale = power;
      number.remove_suffix(1);
      break;
    }
  try {
    return parse_real(number) * scale;
  } catch (const UsageError&) {
    refuse();
  }
  return 0;
}

double parse_quantity(const std::string& text, const std::string& unit) {
  if (unit == "1") return parse_fraction(text);
  if (unit == "s") return parse_seconds(text);
  if (unit == "B") return static_cast<double>(parse_bytes(text));
  return parse_rate(text, unit);
}

void read_metric(const Cursor& at, Selection& selection) {
  const auto metric = at.need("metric"), unit = at.need("unit");
  selection.metric = filled_text(metric);
  selection.unit = filled_text(unit);
  if (blank(selection.metric) || blank(selection.unit)) return;
  const auto units = units_of(selection.metric, std::string_view(selection.key).substr(0, selection.key.find('/')));
  bool fits = units.empty();  // unknown metric: check() asks the records
  for (const auto& known : units) fits = fits || known == selection.unit;
  if (!fits)
    unit->error(fmt::format("{} does not fit {}: that is in {}", in_quotes(selection.unit), in_quotes(selection.metric),
                            fmt::join(units, " or ")));
}

void read_filters(const Cursor& at, Selection& selection) {
  static const std::vector<std::string> devices = {"cpu", "cuda"};
  selection.protocol = Json::object();
  if (const auto protocol = at.find("protocol"))
    for (const auto& [name, value] : protocol->members()) {
      if (value.json().is_structured() || value.json().is_null())
        value.error(fmt::format("must be text, a number, true or false, is {}", kind_of(value.json())));
      selection.protocol[name] = value.json();
    }
  if (const auto device = at.find("device")) selection.device = device->choice(devices).value_or("");
  const auto count = [&](const char* name) -> std::optional<int> {
    const auto found = at.find(name);
    const auto value = found ? found->integer(1, max_count) : std::nullopt;
    return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
  };
  selection.ranks = count("ranks");
  selection.nodes = count("nodes");
  if (const auto labels = at.find("labels"))
    for (const auto& [name, value] : labels->members()) selection.labels[name] = value.text().value_or("");
}

std::string as_text(const Json& value) {
  return value.is_string() ? one_line(value.get_ref<const std::string&>(), 80)
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// 3 and 3.0 are the same number.
bool equal(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return a.get<double>() == b.get<double>();
  return a == b;
}

}  // namespace

std::vector<std::string> selection_members(std::vector<std::string> more) {
  for (const char* name : {"key", "metric", "unit", "protocol", "device", "ranks", "nodes", "labels", "source", "note"})
    more.emplace_back(name);
  return more;
}

void read_selection(const Cursor& at, Selection& selection) {
  selection.key = filled_text(at.need("key"));
  read_metric(at, selection);
  read_filters(at, selection);
  selection.source = filled_text(at.need("source"));
  if (const auto note = at.find("note")) selection.note = note->text().value_or("");
}

std::optional<double> read_quantity(const Cursor& at, const std::string& unit, double min, double max) {
  if (!at.json().is_string()) return at.number(min, max);
  const auto& text = at.json().get_ref<const std::string&>();
  try {
    const double value = parse_quantity(text, unit);
    if (value >= min && value <= max) return value;
    at.error(value < min ? fmt::format("{} is too small: at least {}", in_quotes(text), min)
                         : fmt::format("{} is too large: at most {}", in_quotes(text), max));
  } catch (const UsageError& problem) {
    at.error(problem.what());
  }
  return std::nullopt;
}

void match_any_threads(Selection& selection) {
  for (const char* name : {"threads", "hash"}) selection.protocol.erase(name);
}

std::string protocol_difference(const Selection& selection, const Record& record) {
  std::vector<std::string> fields, parts;
  if (record.protocol.is_object())
    for (const auto& [name, value] : record.protocol.items()) fields.push_back(name);
  for (const auto& [name, asked] : selection.protocol.items()) {
    const bool has = std::ranges::find(fields, name) != fields.end();
    if (!has)
      parts.push_back(fmt::format("it has no {}, the floor asks for {}{}", one_line(name, 80), as_text(asked),
                                  nearest(name, fields) ? suggestion(name, fields) : ""));
    else if (!equal(record.protocol[name], asked))
      parts.push_back(fmt::format("{} is {}, the floor asks for {}", one_line(name, 80), as_text(record.protocol[name]),
                                  as_text(asked)));
  }
  return joined(parts, "; ");
}

bool key_matches(std::string_view pattern, std::string_view key) {
  return glob_matches(pattern, key, std::equal_to<>());
}

bool concerns(const Selection& selection, const Entry& entry) {
  const Record& record = *entry.record;
  if (!selection.device.empty() && selection.device != record.device) return false;
  if (selection.ranks && *selection.ranks != record.world_ranks) return false;
  if (selection.nodes && *selection.nodes != record.world_nodes) return false;
  for (const auto& [name, pattern] : selection.labels) {
    if (const auto own = record.attribute(name)) {
      if (!key_matches(pattern, *own)) return false;
      continue;
    }
    const Json labels = member(entry.run->run, "/labels");
    const auto of_run = labels.is_object() ? labels.find(name) : labels.end();
    if (!labels.is_object() || of_run == labels.end() || !of_run->is_string() ||
        !key_matches(pattern, of_run->get_ref<const std::string&>()))
      return false;
  }
  return true;
}

}  // namespace assay::fitness
