// Reads a floors file strictly: a limit without a source is refused.
#include "harness/fitness/floors/floors.h"
#include "harness/core/configs.h"
#include "harness/json/json.h"
#include "harness/runs/filled_text.h"

#include <fmt/format.h>

#include <limits>

namespace assay::fitness {

namespace {

constexpr int floors_schema = 1;
constexpr double max_limit = std::numeric_limits<double>::max();

std::optional<double> read_limit(const Cursor& at, const Floor& floor) {
  double min = 0, max = max_limit;
  // The median itself is 1: no fleet can meet a floor above it or a ceiling below it.
  if (floor.relative && floor.bound == Bound::at_least) max = 1;
  if (floor.relative && floor.bound == Bound::at_most) min = 1;
  return read_quantity(at, floor.relative ? "1" : floor.unit, min, max);
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

void read_relation(const Cursor& at, Floor& floor) {
  static const std::vector<std::string> relations = {"fleet_median"};
  if (const auto relative = at.find("relative_to")) floor.relative = relative->choice(relations).has_value();
  if (const auto members = at.find("min_members")) {
    if (!at.find("relative_to")) members->error("needs \"relative_to\"");
    floor.min_members = static_cast<int>(members->integer(2, max_count).value_or(floor.min_members));
  }
}

Floor read_floor(const Cursor& at) {
  static const std::vector<std::string> names =
      selection_members({"at_least", "at_most", "required", "relative_to", "min_members"});
  Floor floor;
  floor.pointer = at.pointer();
  if (!at.object()) return floor;
  at.only(names);
  read_selection(at, floor);
  read_relation(at, floor);
  read_bound(at, floor);
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

Floors floors_of(const Json& json, const std::filesystem::path& path) {
  Floors all;
  all.file = path.string();
  all.name = path.stem().string();
  return read_strictly(json, all.file, floors_schema, {"schema", "name", "description", "hardware", "floors"},
                       [&](const Cursor& root) {
                         if (const auto name = root.find("name")) all.name = filled_text(name);
                         all.description = root.text_of("description");
                         std::vector<std::string> hardware;
                         if (const auto patterns = root.find("hardware"))
                           for (const Cursor& each : patterns->elements()) hardware.push_back(filled_text(each));
                         std::map<std::string, std::string> seen;
                         if (const auto list = root.need("floors")) {
                           if (list->json().is_array() && list->json().empty())
                             list->error("is an empty list: nothing to judge");
                           for (const Cursor& each : list->elements()) {
                             const std::size_t before = root.problems().count();
                             all.floors.push_back(read_floor(each));
                             all.floors.back().hardware = hardware;
                             if (root.problems().count() > before) continue;
                             const auto [first, fresh] = seen.try_emplace(identity(all.floors.back()), each.pointer());
                             if (!fresh) each.error(fmt::format("is the same floor as {}", first->second));
                           }
                         }
                         return all;
                       });
}

}  // namespace

Floors load_floors(const std::filesystem::path& path) { return floors_of(read_json(path), path); }

Floors parse_floors(std::string_view text, const std::filesystem::path& path) {
  return floors_of(parse_json(text, path.string()), path);
}

Floors find_floors(const std::string& word) {
  std::error_code none;
  const std::filesystem::path path = word;
  const bool exists = std::filesystem::exists(path, none) && !std::filesystem::is_directory(path, none);
  return load_floors(exists ? path : find_config("floors", "floors file", word));
}

}  // namespace assay::fitness
