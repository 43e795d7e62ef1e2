// Which floors an acceptance did not hold any figure against, and which cases it did not measure.
#include "harness/fitness/cluster/cluster.h"

#include "harness/core/text.h"
#include "harness/fitness/floors/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace assay::fitness {

namespace {

constexpr std::size_t max_named = 3;  // in a line; the document lists all

std::string short_title(const Floor& floor) {
  const std::string filters = one_line(filters_text(floor), 60);  // learned floors have many
  return fmt::format("{} {}{}", one_line(floor.key, 200), one_line(floor.metric, 80),
                     filters.empty() ? "" : " with " + filters);
}

}  // namespace

void UnmeasuredFloors::expect(const Floors& floors, bool only_required) {
  for (const Floor& floor : floors.floors)
    if (floor.required || !only_required)
      left_.push_back({floor, floors.file, floors.name,
                       floor.relative ? "fewer than three hosts have no median" : "no stage that ran measures it"});
}

void UnmeasuredFloors::add(const CheckResult& result) {
  for (const FloorResult& one : result.results) {
    const auto left = std::ranges::find_if(left_, [&](const UnmeasuredFloor& each) {
      return each.file == result.floors->file && each.floor.pointer == one.floor->pointer;
    });
    if (left == left_.end()) continue;
    if (one.unmeasured.empty()) {
      left_.erase(left);
      continue;
    }
    const int nearness = !one.records.empty() ? 2 : one.of_key > 0 ? 1 : 0;
    // Among stages with other keys only, the reason that names the nearest key is the longer one.
    if (nearness < left->nearness || (nearness == 0 && one.unmeasured.size() <= left->reason.size())) continue;
    left->reason = one.unmeasured;
    left->nearness = nearness;
  }
}

std::vector<std::string> unmeasured_lines(const std::vector<UnmeasuredFloor>& floors) {
  struct File {
    std::size_t count = 0, required = 0;
    std::vector<std::string> titles;
  };
  std::map<std::string, File> files;  // by name
  for (const UnmeasuredFloor& one : floors) {
    File& file = files[one.name];
    file.required += one.floor.required ? 1 : 0;
    if (++file.count <= max_named) file.titles.push_back(short_title(one.floor));
  }
  std::vector<std::string> lines;
  for (auto& [name, file] : files) {
    if (file.count > max_named) file.titles.push_back(fmt::format("and {} more", file.count - max_named));
    lines.push_back(fmt::format(
        "not measured at this level: {} of {}{} ({})", plural(file.count, "floor"), one_line(name, 80),
        file.required > 0 ? fmt::format(", {} of them required", file.required) : "", fmt::join(file.titles, "; ")));
  }
  return lines;
}

std::string skips_text(const RunData& run) {
  constexpr std::size_t max_named = 3;
  std::map<std::string, const Record*> skipped;  // by key; null: it ran somewhere
  for (const Record& record : run.records) {
    const Record*& one = skipped.try_emplace(record.key, &record).first->second;
    if (record.status != Status::skipped) one = nullptr;
  }
  const std::size_t cases = skipped.size();
  std::erase_if(skipped, [](const auto& one) { return !one.second; });
  if (skipped.empty()) return {};
  std::vector<std::string> named;
  for (const auto& [key, record] : skipped)
    if (named.size() < max_named)
      named.push_back(fmt::format("{} ({})", one_line(key, 200), one_line(record->reason, 200)));
  if (skipped.size() > max_named) named.push_back(fmt::format("and {} more", skipped.size() - max_named));
  return fmt::format("{} of {} skipped everywhere: {}", skipped.size(), plural(cases, "case"), fmt::join(named, "; "));
}

}  // namespace assay::fitness
