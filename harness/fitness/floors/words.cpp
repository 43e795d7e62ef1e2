#include "harness/fitness/floors/words.h"

#include "harness/core/text.h"
#include "harness/core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::fitness {

namespace {

// "[789, 830]" if the bounds print in the same unit as the value, else each with its unit.
std::string range_text(const Interval& range, const std::string& unit, double half, const std::string& value) {
  std::string low = format_quantity(range.low, unit, half), high = format_quantity(range.high, unit, half);
  const auto suffix = [](const std::string& text) { return text.substr(std::min(text.find(' '), text.size())); };
  if (suffix(low) == suffix(value) && suffix(high) == suffix(value)) {
    low.resize(low.size() - suffix(low).size());
    high.resize(high.size() - suffix(high).size());
  }
  return fmt::format("[{}, {}]", low, high);
}

std::string_view sign(Bound bound, bool held) {
  if (bound == Bound::at_least) return held ? ">=" : "<";
  return held ? "<=" : ">";
}

std::string share_text(double share) { return fmt::format("{:.4g} %", share * 100); }

}  // namespace

std::string filters_text(const Floor& floor) {
  std::vector<std::string> parts;
  if (!floor.device.empty()) parts.push_back("device " + floor.device);
  if (floor.ranks) parts.push_back(plural(*floor.ranks, "rank"));
  if (floor.nodes) parts.push_back(plural(*floor.nodes, "node"));
  for (const auto& [name, pattern] : floor.labels)
    parts.push_back(fmt::format("label {}={}", one_line(name, 80), one_line(pattern, 80)));
  for (const auto& [name, value] : floor.protocol.items())
    parts.push_back(fmt::format("{}={}", one_line(name, 80),
                                value.is_string() ? one_line(value.get_ref<const std::string&>(), 80) : value.dump()));
  return joined(parts);
}

std::string floor_title(const Floor& floor) {
  const std::string filters = filters_text(floor);
  const std::string limit =
      floor.relative ? share_text(floor.limit) + " of the fleet's median" : format_quantity(floor.limit, floor.unit);
  return fmt::format("{} {} {} {}{}", one_line(floor.key, 400), one_line(floor.metric, 80), sign(floor.bound, true),
                     limit, filters.empty() ? "" : fmt::format(" ({})", filters));
}

Json floor_json(const Floor& floor) {
  Json json;
  json["key"] = floor.key;
  json["metric"] = floor.metric;
  json["unit"] = floor.unit;
  json[floor.bound == Bound::at_least ? "at_least" : "at_most"] = floor.limit;
  if (floor.relative) json["relative_to"] = "fleet_median";
  if (floor.relative) json["min_members"] = floor.min_members;
  json["protocol"] = floor.protocol;
  if (!floor.device.empty()) json["device"] = floor.device;
  if (floor.ranks) json["ranks"] = *floor.ranks;
  if (floor.nodes) json["nodes"] = *floor.nodes;
  if (!floor.labels.empty()) json["labels"] = floor.labels;
  json["source"] = floor.source;
  json["required"] = floor.required;
  return json;
}

std::string comparison_text(const Floor& floor, const Judgement& judgement) {
  const double value = *judgement.value;
  std::optional<double> half;
  if (const auto& found = judgement.range) half = std::max(found->high - value, value - found->low);
  std::string shown = format_quantity(value, floor.unit, half);
  std::string range = judgement.range ? " " + range_text(*judgement.range, floor.unit, *half, shown) : "";
  if (!judgement.limit) return shown + range;
  std::string limit = format_quantity(*judgement.limit, floor.unit);
  // Both print alike although they differ: show as many digits as it takes, up to four.
  if (shown == limit && value != *judgement.limit) {
    const double gap = std::abs(value - *judgement.limit);
    shown = format_quantity(value, floor.unit, gap);
    limit = format_quantity(*judgement.limit, floor.unit, gap);
  }
  const bool held = judgement.outcome != Outcome::fail;
  std::string text = fmt::format("{} {} {}{}", shown, sign(floor.bound, held), limit, range);
  if (judgement.median)
    text += fmt::format(" ({} of the median of {}, {})", share_text(floor.limit), judgement.members,
                        format_quantity(*judgement.median, floor.unit));
  return text;
}

std::string rough_percent(double fraction) {
  return std::abs(fraction) < 0.995 ? fmt::format("{:.2g} %", fraction * 100) : fmt::format("{:.0f} %", fraction * 100);
}

std::string place_text(const Judgement& judgement) {
  const std::string place = one_line(judgement.entry.place(), 400);
  return judgement.pointer.empty() ? place : place + " " + judgement.pointer;
}

}  // namespace assay::fitness
