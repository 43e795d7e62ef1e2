// Reads a floors file strictly: a limit without a source is refused.
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "reports/acceptance/acceptance.h"
#include "reports/acceptance/metric_units.h"
#include "reports/data/filled_text.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

namespace assay::report {

namespace {

constexpr int floors_schema = 1;
constexpr double max_limit = std::numeric_limits<double>::max();
constexpr int max_members = 1000000;

// "700 TFLOP/s" in base units: a number, one of k M G T P, and the unit itself.
double parse_rate(std::string_view text, const std::string& unit) {
  const auto refuse = [&] {
    throw UsageError(fmt::format("{} is not a quantity in {} (\"1.5 G{}\")", in_quotes(text), unit, unit));
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

double parse_limit(const std::string& text, const Floor& floor) {
  if (floor.relative || floor.unit == "1") return parse_fraction(text);
  if (floor.unit == "s") return parse_seconds(text);
  if (floor.unit == "B") return static_cast<double>(parse_bytes(text));
  return parse_rate(text, floor.unit);
}

std::optional<double> read_limit(const Cursor& at, const Floor& floor) {
  double min = 0, max = max_limit;
  // The median itself is 1: no fleet can meet a floor above it or a ceiling below it.
  if (floor.relative && floor.bound == Bound::at_least) max = 1;
  if (floor.relative && floor.bound == Bound::at_most) min = 1;
  if (!at.json().is_string()) return at.number(min, max);
  const auto& text = at.json().get_ref<const std::string&>();
  try {
    const double limit = parse_limit(text, floor);
    if (limit >= min && limit <= max) return limit;
    at.error(limit < min ? fmt::format("{} is too small: at least {}", in_quotes(text), min)
                         : fmt::format("{} is too large: at most {}", in_quotes(text), max));
  } catch (const UsageError& problem) {
    at.error(problem.what());
  }
  return std::nullopt;
}

void read_bound(const Cursor& at, Floor& floor) {
  const auto least = at.find("at_least"), greatest = at.find("at_most");
  if (!least == !greatest) {
    at.error(least ? "has both \"at_least\" and \"at_most\": split it into two floors"
                   : "needs a limit: \"at_least\" or \"at_most\"");
    return;
  }
  floor.bound = least ? Bound::at_least : Bound::at_most;
  floor.limit = read_limit(least ? *least : *greatest, floor).value_or(0);
}

void read_metric(const Cursor& at, Floor& floor) {
  const auto metric = at.need("metric"), unit = at.need("unit");
  floor.metric = filled_text(metric);
  floor.unit = filled_text(unit);
  if (blank(floor.metric) || blank(floor.unit)) return;
  const auto units = units_of(floor.metric, std::string_view(floor.key).substr(0, floor.key.find('/')));
  bool fits = units.empty();  // unknown metric: check() asks the records
  for (const auto& known : units) fits = fits || known == floor.unit;
  if (!fits)
    unit->error(fmt::format("{} does not fit {}: that is in {}", in_quotes(floor.unit), in_quotes(floor.metric),
                            fmt::join(units, " or ")));
}

void read_filters(const Cursor& at, Floor& floor) {
  static const std::vector<std::string> devices = {"cpu", "cuda"};
  floor.protocol = Json::object();
  if (const auto protocol = at.find("protocol"))
    for (const auto& [name, value] : protocol->members()) {
      if (value.json().is_structured() || value.json().is_null())
        value.error(fmt::format("must be text, a number, true or false, is {}", kind_of(value.json())));
      floor.protocol[name] = value.json();
    }
  if (const auto device = at.find("device")) floor.device = device->choice(devices).value_or("");
  const auto count = [&](const char* name) -> std::optional<int> {
    const auto found = at.find(name);
    const auto value = found ? found->integer(1, max_members) : std::nullopt;
    return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
  };
  floor.ranks = count("ranks");
  floor.nodes = count("nodes");
  if (const auto labels = at.find("labels"))
    for (const auto& [name, value] : labels->members()) floor.labels[name] = value.text().value_or("");
}

void read_relation(const Cursor& at, Floor& floor) {
  static const std::vector<std::string> relations = {"fleet_median"};
  if (const auto relative = at.find("relative_to")) floor.relative = relative->choice(relations).has_value();
  if (const auto members = at.find("min_members")) {
    if (!at.find("relative_to")) members->error("needs \"relative_to\"");
    floor.min_members = static_cast<int>(members->integer(2, max_members).value_or(floor.min_members));
  }
}

Floor read_floor(const Cursor& at) {
  static const std::vector<std::string> names = {"key",      "metric", "unit",        "at_least",    "at_most",
                                                 "protocol", "source", "required",    "device",      "ranks",
                                                 "nodes",    "labels", "relative_to", "min_members", "note"};
  Floor floor;
  floor.pointer = at.pointer();
  if (!at.object()) return floor;
  at.only(names);
  floor.key = filled_text(at.need("key"));
  read_relation(at, floor);
  read_metric(at, floor);
  read_bound(at, floor);
  read_filters(at, floor);
  floor.source = filled_text(at.need("source"));
  if (const auto note = at.find("note")) floor.note = note->text().value_or("");
  if (const auto required = at.find("required")) floor.required = required->flag().value_or(false);
  return floor;
}

// Equal for the same floor, whatever its limit.
std::string identity(const Floor& floor) {
  std::map<std::string, std::string> fields;  // sorted: order in the file has no meaning
  for (const auto& [name, value] : floor.protocol.items())
    fields[name] = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  const Json all = {floor.key,   floor.metric, floor.bound == Bound::at_least, floor.relative,
                    fields,      floor.device, floor.ranks.value_or(0),        floor.nodes.value_or(0),
                    floor.labels};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Floors load_floors(const std::filesystem::path& path) {
  static const std::vector<std::string> names = {"schema", "name", "description", "floors"};
  const Json json = read_json(path);
  Problems problems(path.string());
  const Cursor root(json, problems);
  Floors all;
  all.file = path.string();
  all.name = path.stem().string();
  // Another schema may differ in everything: report one error, not one per difference.
  if (!root.object() || !root.schema(floors_schema)) problems.raise();
  root.only(names);
  if (const auto name = root.find("name")) all.name = filled_text(name);
  if (const auto description = root.find("description")) all.description = description->text().value_or("");
  std::map<std::string, std::string> seen;
  if (const auto list = root.need("floors")) {
    if (list->json().is_array() && list->json().empty()) list->error("is an empty list: nothing to judge");
    for (const Cursor& each : list->elements()) {
      const std::size_t before = problems.count();
      all.floors.push_back(read_floor(each));
      if (problems.count() > before) continue;
      const auto [first, fresh] = seen.try_emplace(identity(all.floors.back()), each.pointer());
      if (!fresh) each.error(fmt::format("is the same floor as {}", first->second));
    }
  }
  problems.raise();
  return all;
}

}  // namespace assay::report
