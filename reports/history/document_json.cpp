// The history for machines: JSON and JUnit.
#include "harness/history/event_json.h"
#include "harness/history/renames.h"
#include "harness/history/series/order.h"
#include "harness/history/sight.h"
#include "reports/history/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace assay::history {

namespace {

std::optional<Night> last_day(const History& history) {
  return history.arrival.last ? std::optional(day_of(history.contents, *history.arrival.last)) : std::nullopt;
}

}  // namespace

Json history_json(const History& history) {
  Json events = Json::array(), small = Json::array(), suspects = Json::array(), flaky = Json::array();
  for (const Event& event : history.found.events) {
    Json one = event_json(event, history);
    one["new"] = event.fresh;
    (event.state == EventState::small ? small : events).push_back(std::move(one));
  }
  for (const Suspect& suspect : history.found.suspects) suspects.push_back(suspect_json(suspect, history));
  const auto names = [&](const std::vector<std::size_t>& series) {
    Json all = Json::array();
    for (const std::size_t index : series) all.push_back(history.series[index].name);
    return all;
  };
  for (std::size_t i = 0; i < history.analysis.series.size(); ++i)
    if (history.analysis.series[i].flaky) flaky.push_back(history.series[i].name);
  Json renamed = Json::array();
  for (const Rename& one : seeming_renames(history))
    renamed.push_back({{"from", one.from}, {"to", one.to}, {"command", alias_command(one)}});
  const auto last = last_day(history);
  const auto& nights = history.analysis.nights;
  const Sight sight = sight_of(history);
  return {{"schema", 1},
          {"night", last ? Json(date_text(*last)) : Json()},
          {"events", std::move(events)},
          {"suspects", std::move(suspects)},
          {"small", std::move(small)},
          {"series", history.series.size()},
          {"series_tested", nights.empty() ? 0 : nights.back().tested},
          {"missing", history.arrival.expected - history.arrival.arrived},
          {"silent", names(history.arrival.silent)},
          {"replaced", names(history.arrival.replaced)},
          {"renamed", std::move(renamed)},
          {"flaky", std::move(flaky)},
          {"false_alarms_per_night", history.options.false_alarms},
          {"tolerance", history.options.tolerance},
          {"detectable", detectable(history)},
          {"blind", {{"series", sight.blind}, {"of", sight.series}, {"young", sight.young}, {"step", blind_step}}},
          {"tonight", history.tonight},
          {"exceptions", exceptions(history)}};
}

report::TestSuite history_suite(const History& history, const Outcome& outcome) {
  using report::TestCase;
  report::TestSuite suite{
      "assay history", "", last_day(history) ? date_text(*last_day(history)) + "T00:00:00Z" : "", {}};
  std::map<std::pair<std::string, std::string>, TestCase> tests;
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < history.series.size(); ++i)
    places[{history.series[i].identity.machine, history.series[i].identity.family}].push_back(i);
  for (const auto& [place, series] : places) {
    TestCase& test = tests[place];
    test = {place.first, place.second, TestCase::Outcome::passed, "", "", "", 0};
    const Sight sight = sight_of(history, series);
    if (sight.is_blind())
      test.message = sight.text();
    else if (std::ranges::none_of(
                 series, [&](std::size_t i) { return history.series[i].track.nights.back() == history.arrival.last; }))
      test.message = "none of its series arrived";
    if (!test.message.empty()) test.outcome = TestCase::Outcome::skipped;
  }
  for (const Event& event : history.found.events) {
    if (!event.alarms()) continue;
    const std::string line =
        fmt::format("{} {}: {}{}", event.id, name_of(event.kind), event.subject,
                    event.shift ? fmt::format(", {:+.1f} %", 100 * std::expm1(*event.shift)) : ": " + event.detail);
    std::set<std::pair<std::string, std::string>> hit;
    for (const EventSeries& one : event.series) {
      const store::SeriesIdentity& id = history.series[one.series].identity;
      hit.insert({id.machine, id.family});
    }
    if (hit.empty()) hit.insert({event.machines.empty() ? "" : event.machines.front(), event.subject});
    for (const auto& place : hit) {
      TestCase& test = tests[place];
      test.classname = place.first, test.name = place.second;
      if (test.outcome == TestCase::Outcome::skipped) test.message.clear();
      test.outcome = TestCase::Outcome::failed;
      test.message += (test.message.empty() ? "" : "; ") + line;
      test.detail += line + "\n" + event.blame.sentence + "\n";
    }
  }
  for (auto& [place, test] : tests) suite.cases.push_back(std::move(test));
  if (outcome.code == ExitCode::no_data)
    suite.cases.push_back({"history", "enough to say", TestCase::Outcome::skipped, outcome.why, "", "", 0});
  return suite;
}

}  // namespace assay::history
