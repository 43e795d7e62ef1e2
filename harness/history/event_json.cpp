#include "harness/history/event_json.h"

#include "harness/history/series/order.h"
#include "harness/json/members.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

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

// The night as a day, by which readers know it.
std::string day_text(Night night, const History& history) { return date_text(day_of(history.contents, night)); }

Json end_json(Night night, const store::Run* run, const History& history) {
  return {{"run", run ? Json(run->id) : Json()},
          {"night", day_text(night, history)},
          {"commit", run && !run->commit.empty() ? Json(run->commit) : Json()}};
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
                   {"measured", Json()}});
    if (!part.measured) continue;
    Json& measured = all.back()["measured"];
    measured = {{"value", relative(part.measured->ratio)}, {"night", day_text(part.measured->night, history)}};
    if (const store::Run* run = history.run_before(part.series, part.measured->night); run && !run->commit.empty())
      measured["commit"] = run->commit;
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
    if (std::ranges::find(event.machines, run.machine) == event.machines.end()) continue;
    if (after && run.night >= event.first_after) return &run;
    if (!after && run.night <= event.last_before) found = &run;
  }
  return found;
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
          {"back", event.back},
          {"machines", event.machines},
          {"from", end_json(event.last_before, run_of(event, history, false), history)},
          {"to", end_json(event.first_after, run_of(event, history, true), history)},
          {"opened", day_text(event.opened, history)},
          {"closed", event.closed ? Json(day_text(*event.closed, history)) : Json()},
          {"shift", shift_json(event.shift, event.interval)},
          {"changes", changes_json(event.series, history)},
          {"causes", json_of(event.blame.causes)},
          {"exonerated", json_of(event.blame.exonerated)},
          {"mediators", json_of(event.blame.mediators)},
          {"blame", event.blame.sentence},
          {"confirmed", event.confirmed},
          {"culprit", or_null(event.culprit)},
          {"detail", event.detail},
          {"decision", or_null(event.decision)}};
}

Json suspect_json(const Suspect& suspect, const History& history) {
  const Change& change = suspect.change;
  return {{"id", suspect.id},
          {"series", history.series[suspect.series].name},
          {"case", history.series[suspect.series].identity.key},
          {"metric", history.series[suspect.series].identity.metric},
          {"direction", direction_of(change.shift)},
          {"from", end_json(change.last_before, history.run_before(suspect.series, change.last_before), history)},
          {"to", end_json(change.first_after, history.run_after(suspect.series, change.first_after), history)},
          {"shift", shift_json(change.shift, change.interval)},
          {"p", change.p},
          {"nights_needed", json_of(suspect.nights_needed)},
          {"same_night", change.same_night},
          {"dismissed", suspect.dismissed}};
}

std::vector<Reported> known_changes(const History& history) {
  std::vector<Reported> known = reported_events(history.contents);
  const auto add = [&](const std::string& id, EventState state, Json document) {
    if (std::ranges::none_of(known, [&](const auto& one) { return one.id == id; }))
      known.push_back({.id = id, .state = state, .document = std::move(document)});
  };
  for (const Event& event : history.found.events) add(event.id, event.state, event_json(event, history));
  for (const Suspect& suspect : history.found.suspects)
    add(suspect.id, EventState::open, suspect_json(suspect, history));
  return known;
}

}  // namespace assay::history
