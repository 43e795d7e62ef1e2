// The history for machines: JSON, JUnit, and the commands of git bisect.
#include "harness/core/text.h"
#include "harness/core/utc.h"
#include "harness/json/json.h"
#include "harness/runs/figures.h"
#include "reports/history/document.h"
#include "reports/history/sight.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace assay::history {

namespace {

// A ratio of speeds, less 1: -0.2 is a fifth slower.
double relative(double log_ratio) { return std::expm1(log_ratio); }

Json shift_json(std::optional<double> shift, const std::optional<Interval>& interval) {
  return {{"value", shift ? Json(relative(*shift)) : Json()},
          {"low", interval ? Json(relative(interval->low)) : Json()},
          {"high", interval ? Json(relative(interval->high)) : Json()}};
}

const char* direction_of(double shift) { return shift < 0 ? "slower" : "faster"; }

Json end_json(Night night, const store::Run* run) {
  return {{"run", run ? Json(run->id) : Json()},
          {"night", date_text(night)},
          {"commit", run && !run->commit.empty() ? Json(run->commit) : Json()}};
}

Json causes_json(const std::vector<Cause>& causes) {
  Json all = Json::array();
  for (const Cause& cause : causes)
    all.push_back({{"fact", cause.fact},
                   {"before", cause.before.empty() ? Json() : Json(cause.before)},
                   {"after", cause.after.empty() ? Json() : Json(cause.after)},
                   {"p", cause.p},
                   {"evidence", cause.evidence},
                   {"exonerated_by", cause.exonerated_by}});
  return all;
}

Json changes_json(const std::vector<EventSeries>& parts, const History& history) {
  Json all = Json::array();
  for (const EventSeries& part : parts) {
    const TrackedSeries& series = history.series[part.series];
    all.push_back({{"series", series.name},
                   {"machine", series.identity.machine},
                   {"case", series.identity.key},
                   {"metric", series.identity.metric},
                   {"unit", series.identity.unit},
                   {"shift", shift_json(part.shift, part.interval)},
                   {"alarmed", part.alarmed},
                   {"measured", part.measured ? Json{{"value", relative(part.measured->ratio)},
                                                     {"night", date_text(part.measured->night)}}
                                              : Json()}});
  }
  return all;
}

// The run on one side of an event: that of its worst series, or of its machines where that has none (a case that broke,
// another machine or protocol).
const store::Run* run_of(const Event& event, const History& history, bool after) {
  if (!event.series.empty()) {
    const std::size_t worst = event.series.front().series;
    if (const store::Run* run =
            after ? history.run_after(worst, event.first_after) : history.run_before(worst, event.last_before))
      return run;
  }
  const store::Run* found = nullptr;
  for (const store::Run& run : history.contents.runs) {
    if (std::find(event.machines.begin(), event.machines.end(), run.machine) == event.machines.end()) continue;
    if (after && run.night >= event.first_after) return &run;
    if (!after && run.night <= event.last_before) found = &run;
  }
  return found;
}

// What changed most: an event's worst series, or the suspect itself.
const Json& worst_of(const Json& change) {
  const Json& parts = member(change, "/changes");
  return parts.is_array() && !parts.empty() ? parts.front() : change;
}

// The flags of `ab` that name the figure: as the user says, else of lines the case that changed most.
std::string figure_flags(const Json& change, const BisectCommands& commands) {
  constexpr std::string_view imported = "imported/";
  if (const std::string& metric = commands.metric; !metric.empty())
    return fmt::format(
        " --metric {}{}", shell_word(metric),
        commands.better && metric != "time" && metric != "lines" ? " --better " + word_of(*commands.better) : "");
  const std::string name = text_member(worst_of(change), "/case");
  if (name.empty()) return "";
  return " --case " + shell_word(name.starts_with(imported) ? name.substr(imported.size()) : name);
}

bool is_commit(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '.' || c == '_' || c == '/';
  }) && text.front() != '-';
}

}  // namespace

Json event_json(const Event& event, const History& history) {
  Json series = Json::array();
  for (const EventSeries& one : event.series) series.push_back(history.series[one.series].name);
  return {{"id", event.id},
          {"state", name_of(event.state)},
          {"kind", name_of(event.kind)},
          {"direction", event.shift ? Json(direction_of(*event.shift)) : Json()},
          {"subject", event.subject},
          {"series", std::move(series)},
          {"machines", event.machines},
          {"from", end_json(event.last_before, run_of(event, history, false))},
          {"to", end_json(event.first_after, run_of(event, history, true))},
          {"opened", date_text(event.opened)},
          {"closed", event.closed ? Json(date_text(*event.closed)) : Json()},
          {"shift", shift_json(event.shift, event.interval)},
          {"changes", changes_json(event.series, history)},
          {"causes", causes_json(event.blame.causes)},
          {"exonerated", causes_json(event.blame.exonerated)},
          {"mediators", causes_json(event.blame.mediators)},
          {"blame", event.blame.sentence},
          {"confirmed", event.confirmed},
          {"detail", event.detail},
          {"decision", event.decision.empty() ? Json() : Json(event.decision)}};
}

Json suspect_json(const Suspect& suspect, const History& history) {
  const Change& change = suspect.change;
  return {{"id", suspect.id},
          {"series", history.series[suspect.series].name},
          {"case", history.series[suspect.series].identity.key},
          {"direction", direction_of(change.shift)},
          {"from", end_json(change.last_before, history.run_before(suspect.series, change.last_before))},
          {"to", end_json(change.first_after, history.run_after(suspect.series, change.first_after))},
          {"shift", shift_json(change.shift, change.interval)},
          {"p", change.p},
          {"nights_needed", suspect.nights_needed ? Json(*suspect.nights_needed) : Json()},
          {"same_night", change.same_night},
          {"dismissed", suspect.dismissed}};
}

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
  const auto& nights = history.analysis.nights;
  const Sight sight = sight_of(history);
  return {{"schema", 1},
          {"night", history.arrival.last ? Json(date_text(*history.arrival.last)) : Json()},
          {"events", std::move(events)},
          {"suspects", std::move(suspects)},
          {"small", std::move(small)},
          {"series", history.series.size()},
          {"series_tested", nights.empty() ? 0 : nights.back().tested},
          {"missing", history.arrival.expected - history.arrival.arrived},
          {"silent", names(history.arrival.silent)},
          {"replaced", names(history.arrival.replaced)},
          {"flaky", std::move(flaky)},
          {"false_alarms_per_night", history.options.false_alarms},
          {"tolerance", history.options.tolerance},
          {"detectable", detectable(history)},
          {"blind", {{"series", sight.blind}, {"of", sight.series}, {"young", sight.young}, {"step", blind_step}}},
          {"exceptions", exceptions(history)}};
}

report::TestSuite history_suite(const History& history, const Outcome& outcome) {
  using report::TestCase;
  report::TestSuite suite{
      "assay history", "", history.arrival.last ? date_text(*history.arrival.last) + "T00:00:00Z" : "", {}};
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
    else if (std::none_of(series.begin(), series.end(),
                          [&](std::size_t i) { return history.series[i].track.nights.back() == history.arrival.last; }))
      test.message = "none of its series arrived";
    if (!test.message.empty()) test.outcome = TestCase::Outcome::skipped;
  }
  for (const Event& event : history.found.events) {
    if (!event.alarms()) continue;
    const std::string line =
        fmt::format("{} {}: {}{}", event.id, name_of(event.kind), event.subject,
                    event.shift ? fmt::format(", {:+.1f} %", 100 * relative(*event.shift)) : ": " + event.detail);
    std::set<std::pair<std::string, std::string>> hit;
    for (const EventSeries& one : event.series) {
      const store::Identity& id = history.series[one.series].identity;
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

std::optional<Better> direction_of(const Json& change, const History& history) {
  const std::string series = text_member(worst_of(change), "/series");
  for (const TrackedSeries& one : history.series)
    if (one.name == series) return one.identity.better;
  return std::nullopt;
}

std::vector<std::string> bisect_commands(const Json& change, const BisectCommands& commands) {
  const std::string before = text_member(change, "/from/commit"), after = text_member(change, "/to/commit");
  if (!is_commit(before) || !is_commit(after) || before == after) return {};
  // 125 tells git to skip a commit: it does not build, or too little was measured to say.
  std::string judge = fmt::format("({}) || exit 125; ", commands.build);
  std::vector<std::string> all;
  if (text_member(change, "/kind") == "broke") {
    judge += fmt::format("({}) || exit 1", commands.run);
  } else {
    // A commit with the change is bad to git, and ab exits with 1 where B is slower than A: of a commit that made it
    // faster, B is the build before.
    std::string a = "cd ../assay-good && " + commands.run, b = commands.run;
    if (text_member(change, "/direction") == "faster") std::swap(a, b);
    judge += fmt::format(
        "assay ab --a {} --b {}{}; code=$?; [ $code -ne 3 ] || exit 125; [ $code -le 1 ] || exit 128; "
        "exit $code",
        shell_word(a), shell_word(b), figure_flags(change, commands));
    all = {fmt::format("git worktree add ../assay-good {}", before),
           fmt::format("(cd ../assay-good && {})", commands.build)};
  }
  all.push_back(fmt::format("git bisect start {} {}", after, before));
  all.push_back(fmt::format("git bisect run sh -c {}", shell_word(judge)));
  return all;
}

}  // namespace assay::history
