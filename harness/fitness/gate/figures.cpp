// What floors make of the figures of one run of a gate's test.
#include "harness/fitness/gate/figures.h"
#include "harness/fitness/floors/judge.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::gate {

namespace {

// CPUs that others may have used, or the hypervisor took.
std::optional<double> outside(const Record& record) {
  return record.outside_cpu ? std::optional(record.outside_cpu->cpus + record.outside_cpu->steal) : std::nullopt;
}

}  // namespace

std::string add_repetitions(const RunSet& runs, const FloorsOfTest& by, TestOutcome& outcome,
                            std::set<std::string>& used) {
  std::string why_not;
  fitness::Floors floors = by.floors;
  // To a floor for more threads, the threads that a quota took away are a loss and no other measurement.
  if (by.withheld_cpus > 0)
    for (fitness::Floor& floor : floors.floors) fitness::match_any_threads(floor);
  const fitness::CheckResult checked = fitness::check(runs, floors, by.families);
  for (const fitness::FloorResult& result : checked.results) {
    for (const fitness::Judgement& one : result.records) {
      if (!one.value || !one.limit) {
        if (why_not.empty()) why_not = one.reason;
        continue;
      }
      const Record& record = *one.entry.record;
      used.insert(result.floor->pointer);
      const std::string name = fmt::format("{} of {}", result.floor->metric, record.key);
      auto figure = std::ranges::find_if(
          outcome.figures, [&](const Figure& known) { return known.name == name && known.floor == *one.limit; });
      if (figure == outcome.figures.end())
        figure = outcome.figures.insert(figure, {name, result.floor->unit, *one.limit, {}});
      // CPUs that a quota kept from the case: those it had to do without, and those it was stopped on.
      const double stopped = record.outside_cpu ? record.outside_cpu->throttled.value_or(0) : 0;
      figure->repetitions.push_back({.value = *one.value,
                                     .range = one.range,
                                     .shortfall = fitness::shortfall(*one.value, result.floor->bound, *one.limit),
                                     .below = one.outcome == fitness::Outcome::fail,
                                     .outside = outside(record),
                                     .held_back = by.withheld_cpus + stopped,
                                     .slowed = record.samples.throttled && !record.samples.throttled->empty(),
                                     .crowded = by.crowded});
    }
  }
  return why_not;
}

}  // namespace assay::gate
