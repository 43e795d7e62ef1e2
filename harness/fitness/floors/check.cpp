// Checks all floors against all runs: which records a floor concerns, its verdict, and errors in the floor itself.
#include "harness/fitness/floors/check.h"
#include "harness/core/nearest.h"
#include "harness/core/plain_text.h"
#include "harness/core/text.h"
#include "harness/fitness/floors/fleet.h"
#include "harness/fitness/floors/judge.h"
#include "harness/fitness/floors/metric_units.h"
#include "harness/fitness/floors/words.h"
#include "harness/json/json.h"
#include "harness/runs/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace assay::fitness {

namespace {

constexpr std::size_t max_keys_compared = 200;

// Entries by key: runs repeat keys, and a pattern is matched once per key.
using Index = std::map<std::string_view, std::vector<std::size_t>>;

struct Candidates {
  std::vector<Entry> entries;  // that the floor concerns, in the runs' order
  std::size_t keys = 0;        // records whose key matches
  std::size_t injected = 0;    // of those that the floor concerns
};

Candidates candidates_of(const Floor& floor, const RunSet& runs, const Index& index) {
  std::vector<std::size_t> matching;
  for (const auto& [key, places] : index)
    if (key_matches(floor.key, key)) matching.insert(matching.end(), places.begin(), places.end());
  std::ranges::sort(matching);
  Candidates found;
  found.keys = matching.size();
  for (const std::size_t place : matching) {
    const Entry& entry = runs.entries()[place];
    if (!concerns(floor, entry)) continue;
    if (injected(*entry.record))
      ++found.injected;
    else
      found.entries.push_back(entry);
  }
  return found;
}

std::string_view family_of(std::string_view key) { return key.substr(0, key.find('/')); }

// A hint for a pattern that matches no key: an unknown family, or the nearest key.
std::string nearest_key(const Floor& floor, const Index& index, std::span<const std::string> families) {
  const std::string family(family_of(floor.key));
  const bool open = family.find('*') != std::string::npos;
  std::vector<std::string> keys;
  std::set<std::string, std::less<>> measured;
  for (const auto& [key, places] : index) {
    measured.emplace(family_of(key));
    if (family_of(key) == family && keys.size() < max_keys_compared) keys.emplace_back(key);
  }
  if (!open && !measured.contains(family)) {
    std::vector<std::string> known(families.begin(), families.end());
    if (std::ranges::find(known, family) != known.end()) return {};
    known.insert(known.end(), measured.begin(), measured.end());
    return fmt::format("; unknown family {}{}", in_quotes(family), suggestion(family, known));
  }
  const std::string* best = nullptr;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const std::string& key : keys) {
    const std::size_t edits = edit_distance(floor.key, key);
    if (edits < fewest) fewest = edits, best = &key;
  }
  return best ? fmt::format("; the nearest key is {}", one_line(*best)) : "";
}

std::string why_missing(const Floor& floor, const Candidates& found, const std::vector<Judgement>& judged,
                        const Index& index, std::span<const std::string> families) {
  if (!judged.empty())
    return fmt::format("{} ({}{})", judged.front().reason, place_text(judged.front()), and_more(judged.size(), 1));
  if (found.injected > 0) return plural(found.injected, "record") + " with injected faults, not measurements";
  if (found.keys > 0)
    return fmt::format("{} with this key, none with {}", plural(found.keys, "record"), filters_text(floor));
  return "matched no record" + nearest_key(floor, index, families);
}

// Worst first; ties keep the runs' order.
void sort_worst_first(std::vector<Judgement>& records, const Floor& floor) {
  const auto beyond = [&](const Judgement& judgement) {
    return judgement.value && judgement.limit ? shortfall(*judgement.value, floor.bound, *judgement.limit) : 0.0;
  };
  std::ranges::stable_sort(records, [&](const Judgement& a, const Judgement& b) {
    if (a.outcome != b.outcome) return a.outcome < b.outcome;
    return beyond(a) > beyond(b);
  });
}

// Lists the cases of an unfinished run's plan that the floor is about and that have no record.
std::string unfinished(const Floor& floor, const RunSet& runs) {
  for (std::size_t i = 0; i < runs.runs().size(); ++i) {
    const RunData& run = runs.runs()[i];
    const Json& cases = member(run.run, "/plan/cases");
    if (!cases.is_array() || !text_member(run.run, "/finished").empty()) continue;
    std::set<std::string, std::less<>> measured;
    for (const Entry& entry : runs.entries_of(i)) measured.insert(entry.record->key);
    const auto missing = std::ranges::count_if(cases, [&](const Json& one) {
      const std::string key = text_member(one, "/key");
      return key_matches(floor.key, key) && !measured.contains(key);
    });
    if (missing > 0)
      return fmt::format("{} did not finish: {} of its plan with no record", one_line(run.dir.filename().string(), 80),
                         plural(missing, "case"));
  }
  return {};
}

void conclude(FloorResult& result, const RunSet& runs, const std::vector<std::string>& hosts,
              const std::string& missing, const CheckRules& rules) {
  const Floor& floor = *result.floor;
  const auto first = [&](Outcome outcome) -> const Judgement* {
    for (const Judgement& each : result.records)
      if (each.outcome == outcome) return &each;
    return nullptr;
  };
  const auto settle = [&](Fitness verdict, std::string reason) {
    result.verdict = verdict;
    result.reason = std::move(reason);
  };
  const Judgement* failed = first(Outcome::fail);
  const Judgement* unusable = first(Outcome::unusable);
  const Judgement* unsure = first(Outcome::inconclusive);
  const Judgement* passed = first(Outcome::pass);
  if (failed) return settle(Fitness::fail, failed->reason);
  if (floor.required && unusable) return settle(Fitness::fail, "required, but " + unusable->reason);
  if (floor.required && !hosts.empty() && (unsure || passed))
    return settle(Fitness::fail, fmt::format("required, but no record of host {}", fmt::join(hosts, "; host ")));
  if (unsure) return settle(Fitness::unsure, unsure->reason);
  if (const std::string left = rules.whole_runs && floor.required && passed ? unfinished(floor, runs) : "";
      !left.empty())
    return settle(Fitness::unsure, "required, but " + left);
  if (passed) return settle(Fitness::pass, passed->reason);
  if (unusable) return settle(Fitness::unknown, unusable->reason);
  settle(floor.required ? Fitness::fail : Fitness::unknown, (floor.required ? "required, but " : "") + missing);
}

// The first metric of that name in another unit, if it has any.
const Metric* in_other_unit(const Floor& floor, const Entry& entry) {
  if (entry.record->status != Status::ok) return nullptr;
  for (const Metric& metric : entry.record->metrics)
    if (metric.name == floor.metric && !metric.unit.empty() && metric.unit != floor.unit) return &metric;
  return nullptr;
}

// A pattern may match cases whose metric has another unit (int8 products count OP/s, others FLOP/s). They are not the
// floor's; but if it has no other, its unit is wrong, and they stay for lint(). Returns how many were passed over.
std::size_t pass_over_other_units(const Floor& floor, std::vector<Entry>& entries) {
  const auto other = std::stable_partition(entries.begin(), entries.end(),
                                           [&](const Entry& entry) { return !in_other_unit(floor, entry); });
  const auto measured = [&](const Entry& entry) {
    const auto& metrics = entry.record->metrics;
    return entry.record->status == Status::ok &&
           std::ranges::any_of(metrics, [&](const Metric& one) { return one.name == floor.metric; });
  };
  if (!std::any_of(entries.begin(), other, measured)) return 0;
  const auto count = static_cast<std::size_t>(entries.end() - other);
  entries.erase(other, entries.end());
  return count;
}

// The records decide about units, and about metrics that the table does not list.
void lint(const Floor& floor, const Candidates& found, const std::set<std::string>& metrics, Problems& problems) {
  // Other tools name their metrics as they like, and a broken case of theirs has none.
  const bool open = family_of(floor.key) == "imported";
  if (!open && units_of(floor.metric, "").empty() && !metrics.contains(floor.metric)) {
    std::vector<std::string> known = known_metrics();
    known.insert(known.end(), metrics.begin(), metrics.end());
    problems.add(floor.pointer + "/metric",
                 fmt::format("unknown metric {}{}", in_quotes(floor.metric), suggestion(floor.metric, known)));
    return;
  }
  for (const Entry& entry : found.entries)
    if (const Metric* metric = in_other_unit(floor, entry)) {
      problems.add(
          floor.pointer + "/unit",
          fmt::format("{} does not fit {} of {}, which is in {} ({})", in_quotes(floor.unit), in_quotes(floor.metric),
                      one_line(entry.record->key), one_line(metric->unit, 40), entry.place()));
      return;
    }
}

std::vector<std::string> notes_of(const RunSet& runs) {
  std::vector<std::string> notes;
  for (const RunData& run : runs.runs())
    for (std::string& problem : first_ten(run.problems, run.dir.filename().string(), "/"))
      notes.push_back(std::move(problem));
  std::size_t faults = 0;
  for (const Entry& entry : runs.entries()) faults += injected(*entry.record) ? 1 : 0;
  if (faults > 0) notes.push_back(fmt::format("{} with injected faults, not measurements", plural(faults, "record")));
  return notes;
}

}  // namespace

std::size_t CheckResult::count(Fitness verdict) const {
  return static_cast<std::size_t>(std::ranges::count(results, verdict, &FloorResult::verdict));
}

Fitness CheckResult::fitness() const {
  if (count(Fitness::fail) > 0) return Fitness::fail;
  if (count(Fitness::unsure) > 0) return Fitness::unsure;
  return count(Fitness::pass) > 0 ? Fitness::pass : Fitness::unknown;
}

std::vector<std::pair<const Floor*, const Judgement*>> CheckResult::undecided() const {
  std::vector<std::pair<const Floor*, const Judgement*>> found;
  for (const FloorResult& result : results)
    for (const Judgement& judgement : result.records)
      if (judgement.outcome == Outcome::inconclusive && judgement.range && judgement.limit)
        found.emplace_back(result.floor, &judgement);
  return found;
}

CheckResult check(const RunSet& runs, const Floors& floors, std::span<const std::string> families,
                  const CheckRules& rules) {
  Index index;
  std::set<std::string> metrics;
  for (std::size_t i = 0; i < runs.entries().size(); ++i) {
    const Record& record = *runs.entries()[i].record;
    index[record.key].push_back(i);
    for (const Metric& metric : record.metrics) metrics.insert(metric.name);
  }
  std::vector<std::vector<std::string>> hosts;
  for (const RunData& run : runs.runs()) hosts.push_back(machine_of(run).hosts);
  CheckResult all;
  all.floors = &floors;
  all.runs = &runs;
  all.notes = notes_of(runs);
  Problems problems(floors.file);
  std::vector<Candidates> candidates;
  std::vector<FloorFleets> fleets;
  all.results.reserve(floors.floors.size());  // fleets point into them
  for (const Floor& floor : floors.floors) {
    Candidates& found = candidates.emplace_back(candidates_of(floor, runs, index));
    FloorResult& result = all.results.emplace_back();
    result.floor = &floor;
    result.of_key = found.keys;
    result.of_other_unit = pass_over_other_units(floor, found.entries);
    lint(floor, found, metrics, problems);
    for (const Entry& entry : found.entries) result.records.push_back(examine(floor, entry, hosts[entry.run_index]));
    if (floor.relative) {
      fleets.emplace_back(floor, runs, result.records);
    } else {
      for (Judgement& each : result.records)
        if (each.value) decide(each, floor, floor.limit);
    }
  }
  if (rules.false_fails > 0) set_limits(fleets, rules.false_fails, all);
  for (FloorFleets& one : fleets) one.decide();
  for (std::size_t i = 0; i < all.results.size(); ++i) {
    FloorResult& result = all.results[i];
    const Floor& floor = *result.floor;
    sort_worst_first(result.records, floor);
    if (runs.entries().empty()) {
      result.reason = result.unmeasured = "no finished case";
      continue;
    }
    const auto without = floor.required ? hosts_without(runs, result.records) : std::vector<std::string>();
    const std::string missing = why_missing(floor, candidates[i], result.records, index, families);
    if (std::ranges::none_of(result.records, [](const Judgement& one) { return one.limit.has_value(); }))
      result.unmeasured = missing;
    conclude(result, runs, without, missing, rules);
  }
  problems.raise();
  return all;
}

}  // namespace assay::fitness
