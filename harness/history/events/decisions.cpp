// Events as they were reported before, and what people decided about them.
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/history/events/events.h"
#include "harness/history/series/order.h"
#include "harness/json/json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace assay::history {

namespace {

Night night_in(const Json& json, const char* pointer) { return parse_date(text_member(json, pointer), pointer); }

// The logarithm of a ratio of speeds, of which the document has the excess over 1.
std::optional<double> ratio_in(const Json& json, std::string_view path) {
  const std::optional<double> excess = number_member(json, path);
  return excess && *excess > -1 ? std::optional(std::log1p(*excess)) : std::nullopt;
}

// The night of a part of a document that names a commit, or a day.
Night place_in(const store::Contents& contents, const Json& json, const std::string& pointer) {
  if (contents.commits.empty()) return night_in(json, (pointer + "/night").c_str());
  const std::string commit = text_member(json, pointer + "/commit");
  if (const auto night = night_of_commit(contents, commit)) return *night;
  throw UsageError(pointer + ": of no commit that is a night");
}

// Lists each series that `history confirm` measured. Where none is named, an older version has confirmed them all.
std::map<std::string, Measured> measured_in(const store::Contents& contents, const Json& document, Night opened) {
  std::map<std::string, Measured> named, all;
  for (const Json& change : member(document, "/changes")) {
    const std::string series = text_member(change, "/series");
    if (const auto ratio = ratio_in(change, "/measured/value"))
      named[series] = {*ratio, place_in(contents, change, "/measured")};
    if (const auto shift = ratio_in(change, "/shift/value")) all[series] = {*shift, opened};
  }
  return named.empty() ? all : named;
}

// The newest of these stored events that is the same: of its kind, near its place, with a series in common.
const Reported* same_as(const Event& event, const std::vector<const Reported*>& free,
                        const std::vector<TrackedSeries>& series) {
  std::set<std::string> names;
  for (const EventSeries& one : event.series) {
    names.insert(series[one.series].name);
    names.insert(series[one.series].former.begin(), series[one.series].former.end());
  }
  const Reported* newest = nullptr;
  for (const Reported* one : free)
    if (one->kind == event.kind && one->near(event.last_before, event.first_after) &&
        (!newest || one->opened > newest->opened) &&
        std::ranges::any_of(one->series, [&](const auto& name) { return names.contains(name); }))
      newest = one;
  return newest;
}

// An event that the analysis no longer finds.
Event restored(const Reported& report, const SeriesNames& names) {
  Event event;
  event.id = report.id;
  event.kind = report.kind;
  for (const std::string& name : report.series)
    if (const auto at = names.across(name, report.last_before, report.first_after))
      event.series.push_back({*at, 0, {}, 1, false});
  // A change of speed is withdrawn only by an analysis of the nights around it.
  constexpr EventKind steps[] = {EventKind::slower, EventKind::faster, EventKind::changed_protocol};
  constexpr EventState over[] = {EventState::dismissed, EventState::recovered, EventState::withdrawn,
                                 EventState::noted};
  const auto is_in = [](const auto& all, auto one) { return std::ranges::find(all, one) != std::end(all); };
  if (is_in(over, report.state)) {
    event.state = report.state == EventState::noted ? EventState::withdrawn : report.state;
  } else if (!is_in(steps, report.kind) || event.series.size() == report.series.size()) {
    event.state = EventState::withdrawn;
  } else {
    event.unseen = true;
    event.shift = report.shift;
    event.detail = "the nights around it are no longer kept: nothing shows whether it is over";
  }
  event.last_before = report.last_before;
  event.first_after = report.first_after;
  event.opened = report.opened;
  event.confirmed = report.confirmed;
  event.subject = text_member(report.document, "/subject");
  event.culprit = text_member(report.document, "/culprit");
  return event;
}

// "ack by ann at 2026-01-31T09:00:00Z: rolled back tomorrow".
std::string described(const char* verb, const store::Decision& decision) {
  return fmt::format("{} by {} at {}{}: {}", verb, decision.by, decision.at,
                     decision.until ? " until " + *decision.until : std::string(), decision.reason);
}

// The last night that the decision is for; before all nights if it names none.
Night until(const store::Decision& decision) {
  try {
    return decision.until ? parse_date(*decision.until, "until") : INT32_MIN;
  } catch (const Error&) {
    return INT32_MIN;
  }
}

bool covers(const store::Decision& decision, const Event& event, const std::vector<TrackedSeries>& series) {
  if (decision.target == event.id) return true;
  if (event.series.empty()) return matches(decision.target, event.subject);
  return std::ranges::all_of(event.series,
                             [&](const EventSeries& one) { return matches(decision.target, series[one.series].name); });
}

}  // namespace

std::vector<Reported> reported_events(const store::Contents& contents) {
  std::vector<Reported> all;
  for (const store::StoredEvent& stored : contents.events) {
    try {
      Reported one;
      one.id = stored.id;
      one.document = parse_untrusted(stored.document);
      const auto kind = from_word<EventKind>(text_member(one.document, "/kind"));
      const auto state = from_word<EventState>(stored.state);
      if (!kind || !state || !one.document.is_object()) continue;
      one.kind = *kind;
      one.state = *state;
      one.last_before = place_in(contents, one.document, "/from");
      one.first_after = place_in(contents, one.document, "/to");
      one.opened = night_of_day(contents, night_in(one.document, "/opened"));
      one.shift = ratio_in(one.document, "/shift/value");
      one.confirmed = member(one.document, "/confirmed") == Json(true);
      if (one.confirmed) one.measured = measured_in(contents, one.document, one.opened);
      if (const Json& names = member(one.document, "/series"); names.is_array())
        for (const Json& name : names)
          if (name.is_string()) one.series.push_back(name.get<std::string>());
      all.push_back(std::move(one));
    } catch (const Error&) {
      continue;  // of another version, or damaged: the analysis finds the change again
    }
  }
  return all;
}

const Reported& reported_named(const std::vector<Reported>& events, const std::string& id, const std::string& place) {
  const Reported* found = nullptr;
  std::vector<std::string> open;
  for (const Reported& event : events) {
    if (event.id == id) return event;
    if (!id.empty() && event.id.starts_with(id)) {
      if (found) throw UsageError(fmt::format("{}: several events begin with {}", place, in_quotes(id)));
      found = &event;
    }
    if (event.state == EventState::open && open.size() < 12) open.push_back(event.id);
  }
  if (found) return *found;
  throw UsageError(
      fmt::format("{}: no event {}; {}", place, in_quotes(id),
                  open.empty() ? "no check has reported an open one" : fmt::format("open: {}", fmt::join(open, ", "))));
}

void match_reported(std::vector<Event>& events, const std::vector<Reported>& reported,
                    const std::vector<TrackedSeries>& series) {
  std::map<std::string, const Reported*> by_id;
  for (const Reported& one : reported) by_id[one.id] = &one;
  std::set<std::string> taken;
  for (const Event& event : events) taken.insert(event.id);
  std::vector<const Reported*> free;
  for (const Reported& one : reported)
    if (!taken.contains(one.id)) free.push_back(&one);
  for (Event& event : events) {
    auto at = by_id.find(event.id);
    if (at == by_id.end())
      if (const Reported* same = same_as(event, free, series)) {
        std::erase(free, same);
        event.id = same->id;
        event.opened = same->opened;
        at = by_id.find(same->id);
      }
    event.confirmed = event.confirmed || (at != by_id.end() && at->second->confirmed);
    if (at != by_id.end()) event.culprit = text_member(at->second->document, "/culprit");
    constexpr EventState never_alarmed[] = {EventState::small, EventState::withdrawn, EventState::dismissed,
                                            EventState::recovered, EventState::noted};
    event.fresh = at == by_id.end() || std::ranges::find(never_alarmed, at->second->state) != std::end(never_alarmed);
  }
  const SeriesNames names(series);
  for (const Reported* one : free) events.push_back(restored(*one, names));
}

std::map<std::string, const store::Decision*> mutes_in_force(const std::vector<store::Decision>& decisions,
                                                             Night today) {
  std::map<std::string, const store::Decision*> mutes;
  for (const store::Decision& decision : decisions) {
    if (decision.kind == store::DecisionKind::mute && until(decision) >= today) mutes[decision.target] = &decision;
    if (decision.kind == store::DecisionKind::unmute) mutes.erase(decision.target);
  }
  return mutes;
}

void apply_decisions(std::vector<Event>& events, const std::vector<TrackedSeries>& series,
                     const store::Contents& contents) {
  const std::vector<store::Decision>& decisions = contents.decisions;
  const auto mutes = mutes_in_force(decisions, day_of(contents, last_night(series).value_or(0)));
  for (Event& event : events) {
    const auto decide = [&](EventState state, const char* verb, const store::Decision& decision) {
      if (event.state == EventState::open) event.state = state;
      event.decision = described(verb, decision);
    };
    const store::Decision *acknowledged = nullptr, *expected = nullptr;
    for (const store::Decision& decision : decisions) {
      if (decision.kind == store::DecisionKind::acknowledge && decision.target == event.id) acknowledged = &decision;
      if (decision.kind == store::DecisionKind::expect && until(decision) >= day_of(contents, event.first_after) &&
          covers(decision, event, series))
        expected = &decision;
    }
    const auto mute = std::ranges::find_if(mutes, [&](const auto& one) { return covers(*one.second, event, series); });
    if (acknowledged)
      decide(EventState::acknowledged, "acknowledged", *acknowledged);
    else if (expected)
      decide(EventState::expected, "expected", *expected);
    else if (mute != mutes.end())
      decide(EventState::muted, "muted", *mute->second);
  }
}

EventSet find_events(const store::Contents& contents, const std::vector<TrackedSeries>& series,
                     const std::vector<TrackedGroup>& groups, const Analysis& analysis, const Options& options) {
  const std::vector<Reported> reported = reported_events(contents);
  EventSet set = step_events(series, groups, analysis, reported, options);
  const auto add = [&](std::vector<Event> more) {
    set.events.insert(set.events.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  add(broken_cases(contents));
  add(drifts(series, analysis, options));
  add(replaced_hardware(contents, series));
  add(replaced_machines(contents, series, analysis));
  add(changed_protocols(series, analysis, options));
  match_reported(set.events, reported, series);
  apply_decisions(set.events, series, contents);
  for (Event& event : set.events) {
    const bool step = event.kind == EventKind::slower || event.kind == EventKind::faster;
    if (!step || event.state == EventState::small || event.state == EventState::withdrawn) continue;
    Effect effect{event.last_before, event.first_after, event.kind == EventKind::slower, {}};
    for (const EventSeries& one : event.series) effect.series.push_back(one.series);
    event.blame = blame(effect, contents, series, analysis.series);
  }
  const auto rank = [](const Event& event) {
    return std::tuple(!event.alarms(), event.state != EventState::open, -event.first_after, event.id);
  };
  std::ranges::stable_sort(set.events, [&](const Event& a, const Event& b) { return rank(a) < rank(b); });
  return set;
}

}  // namespace assay::history
