// What was learned, as a floors file.
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/fitness/floors/floors.h"
#include "harness/fitness/floors/learn.h"
#include "harness/fitness/floors/words.h"
#include "harness/json/json.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::fitness {

namespace {

// Begins the source of every learned floor, and of no other.
constexpr std::string_view mark = "learned from ";

std::string_view whose(const LearnedFloors& learned) {
  return learned.options.same_machine ? "for that machine only; a run while it is as it was"
                                      : "a healthy machine's run";
}

std::string spread_text(const LearnedFloor& floor) {
  if (!floor.between) return fmt::format("its runs differ by {}", rough_percent(*floor.within));
  if (!floor.within) return fmt::format("machines, one run each, differ by {}", rough_percent(*floor.between));
  return fmt::format("machines differ by {}, runs of one by {}", rough_percent(*floor.between),
                     rough_percent(*floor.within));
}

Json protocol_of_floor(const Record& record) {
  Json fields = Json::object();
  if (record.protocol.is_object())
    for (const auto& [name, value] : record.protocol.items())
      if (!value.is_structured() && !value.is_null()) fields[name] = value;
  return fields;
}

Json floor_of(const LearnedFloors& learned, const LearnedFloor& floor) {
  const Record& like = *floor.like->record;
  Json json = {{"key", like.key}, {"metric", floor.metric}, {"unit", floor.unit}};
  json[floor.better == Better::higher ? "at_least" : "at_most"] = *floor.limit;
  if (const Json fields = protocol_of_floor(like); !fields.empty()) json["protocol"] = fields;
  if (like.device == "cpu" || like.device == "cuda") json["device"] = like.device;
  json["ranks"] = like.world_ranks;
  json["nodes"] = like.world_nodes;
  // Schema 1 does not tell conditions from the user's labels.
  if (like.schema > 1)
    for (const auto& [name, value] : like.conditions) json["labels"][name] = value;
  json["source"] =
      fmt::format("{}{}: {} misses it with at most {}", mark, basis_text(learned, floor.machines, floor.runs),
                  whose(learned), rough_percent(learned.floor_rate));
  json["note"] = fmt::format("median {}; {} (standard deviations); finds a loss of {} in 9 of 10 runs",
                             format_quantity(floor.median, floor.unit), spread_text(floor), rough_percent(*floor.loss));
  return json;
}

}  // namespace

std::string basis_text(const LearnedFloors& learned, std::size_t machines, std::size_t runs) {
  const std::string name = learned.options.same_machine ? "one machine, " + one_line(learned.machines.front(), 80)
                                                        : plural(machines, "machine");
  std::string about = one_line(learned.hardware);
  if (!about.empty() && !learned.measured.empty()) about += "; ";
  about += one_line(learned.measured);
  return fmt::format("{}, {}{}", name, plural(runs, "run"), about.empty() ? "" : fmt::format(" ({})", about));
}

Json floors_of(const LearnedFloors& learned) {
  Json json = {{"schema", 1}};
  json["description"] = fmt::format(
      "Learned by assay floors learn from {}. {} misses any of these floors with at most {}: {} for each of {} that "
      "could "
      "give one (a sum, so less if cases of a machine depend on each other).",
      basis_text(learned, learned.machines.size(), learned.runs),
      learned.options.same_machine ? "For that machine only: a run while it is as it was" : "A healthy machine's run",
      rough_percent(learned.options.false_fail), rough_percent(learned.floor_rate), plural(learned.tried, "case"));
  if (!learned.names.empty()) json["hardware"] = learned.names;
  json["floors"] = Json::array();
  for (const LearnedFloor& each : learned.cases)
    if (each.limit) json["floors"].push_back(floor_of(learned, each));
  return json;
}

bool is_learned(const std::filesystem::path& file) {
  try {
    const Floors floors = load_floors(file);
    return std::ranges::all_of(floors.floors, [](const Floor& floor) { return floor.source.starts_with(mark); });
  } catch (const UsageError&) {
    return false;
  }
}

}  // namespace assay::fitness
