#include "harness/history/series/split.h"

#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace assay::history {

namespace {

// Numbers of the second value's series and of later ones: beyond those of any store.
constexpr std::int64_t per_value = std::int64_t{1} << 40;

void check_fact(const store::Contents& contents, const std::string& fact, const std::string& place) {
  std::set<std::string> names;
  for (const store::Facts& facts : contents.facts)
    for (const auto& [name, value] : facts) names.insert(name);
  if (contents.runs.empty() || names.contains(fact)) return;
  throw UsageError(fmt::format("{}: no run has the fact {}{}", place, in_quotes(fact),
                               suggestion(fact, std::vector<std::string>(names.begin(), names.end()))));
}

}  // namespace

std::int64_t whole_of(std::int64_t number) { return number % per_value; }

store::Contents split_by(store::Contents contents, const std::string& fact, const std::string& place) {
  if (fact.empty()) return contents;
  check_fact(contents, fact, place);
  std::unordered_map<std::int64_t, std::string> value_of;
  for (const store::Run& run : contents.runs) {
    const std::string value = store::fact_of(contents.facts[static_cast<std::size_t>(run.facts)], fact);
    value_of[run.number] = value.empty() ? "unknown" : value;
  }
  std::map<std::pair<std::int64_t, std::string>, std::int64_t> numbers;
  std::vector<store::Series> all;
  for (store::Series& one : contents.series) {
    std::vector<std::string> values;  // by the night on which they came first
    std::map<std::string, std::vector<store::Point>> points;
    for (const store::Point& point : one.points) {
      const std::string& value = value_of.at(point.run);
      std::vector<store::Point>& of_value = points[value];
      if (of_value.empty()) values.push_back(value);
      of_value.push_back(point);
    }
    for (std::size_t k = 0; k < values.size(); ++k) {
      store::Series part = one;
      const std::string text = fmt::format("{}={}", fact, values[k]);
      part.number = numbers[{one.number, values[k]}] = one.number + static_cast<std::int64_t>(k) * per_value;
      part.points = std::move(points[values[k]]);
      part.identity.conditions += (part.identity.conditions.empty() ? "" : "\n") + text;
      if (part.name.empty()) part.name = part.identity.key + ", " + part.identity.metric;
      part.name += " (" + text + ")";
      if (!part.former.empty()) part.former += " (" + text + ")";
      all.push_back(std::move(part));
    }
  }
  // Each goes on with the older series of the same value, if there is one.
  for (store::Series& part : all) {
    if (!part.successor_of) continue;
    const auto at = numbers.find({*part.successor_of, value_of.at(part.points.front().run)});
    part.successor_of = at == numbers.end() ? std::nullopt : std::optional(at->second);
  }
  std::ranges::sort(all, {}, &store::Series::number);
  contents.series = std::move(all);
  return contents;
}

}  // namespace assay::history
