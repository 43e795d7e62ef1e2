// Events: what changed, when, in which series, and whether it still matters. One event is everything that changed in
// one direction between the same two nights.
#pragma once

#include "harness/core/words.h"
#include "harness/history/blame/blame.h"
#include "harness/history/series/tracked.h"
#include "harness/json/fwd.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::history {

enum class EventKind { slower, faster, broke, drift, hardware_replaced, changed_protocol };

enum class EventState {
  open,          // nobody has decided about it
  acknowledged,  // somebody knows (`history ack`)
  muted,         // every series of it is muted, or the event is
  expected,      // announced by `history expect`
  recovered,     // it is over: the figures are back, the case holds again, or a later change undid it
  small,         // real, but too small to alarm
  noted,         // a fact, such as replaced hardware, that needs no decision
  dismissed,     // measured again side by side (`history confirm`): no difference
  withdrawn,     // reported once; with more nights, or other data, it is no change
};

constexpr auto words(EventKind) {
  return std::to_array<std::string_view>(
      {"slower", "faster", "broke", "drift", "hardware_replaced", "changed_protocol"});
}
constexpr auto words(EventState) {
  return std::to_array<std::string_view>(
      {"open", "acknowledged", "muted", "expected", "recovered", "small", "noted", "dismissed", "withdrawn"});
}
using assay::name_of;

// The result of `history confirm`, which measured side by side after that night.
struct Measured {
  double ratio = 0;  // natural logarithm of the ratio of speeds
  Night night = 0;
};

// A series' part of an event.
struct EventSeries {
  std::size_t series = 0;  // index of the tracked series
  double shift = 0;        // natural logarithm of the ratio of speeds; below 0 is slower
  Interval interval = {};
  double p = 1;
  bool alarmed = false;  // by itself, not only as a member of a group that alarmed with the same gap
  std::optional<Measured> measured = {};
};

struct Event {
  std::string id;  // eight hexadecimal digits; the same in every analysis of the same nights
  EventKind kind = EventKind::slower;
  EventState state = EventState::open;
  Night last_before = 0;
  Night first_after = 0;
  Night opened = 0;
  std::optional<Night> closed = {};
  std::optional<double> shift = {};  // the median of its series', or the group's
  std::optional<Interval> interval = {};
  std::vector<EventSeries> series;       // the largest shift first; of an open event those that are still shifted
  std::size_t back = 0;                  // how many more are no longer shifted
  std::vector<std::size_t> groups = {};  // groups that alarmed: indices of tracked groups
  std::vector<std::string> machines = {};
  std::string subject;        // "gemm on node1", or the case that broke
  std::string detail = {};    // why a case broke, what was replaced
  bool confirmed = false;     // confirmed by `history confirm`: open until the figures of the series measured are back
  std::string decision = {};  // "acknowledged by ann at 2026-01-31T09:00:00Z: driver rollback ordered"
  std::string culprit = {};   // the commit that made it, as a bisection found it: "3f9c2ab12345 \"cache keys\""
  Blame blame = {};           // causes; empty unless it is a step that is neither small nor withdrawn
  bool fresh = false;         // not reported by an earlier check
  bool unseen = false;        // shown as it was reported, because the nights around it are no longer kept

  // Whether it makes `history check` exit with 1.
  bool alarms() const;
};

// A change that more nights decide about.
struct Suspect {
  std::string id;
  std::size_t series = 0;
  Change change;
  std::optional<int> nights_needed = {};  // at this size and noise; absent if that is not known
  bool dismissed = false;                 // dismissed by `history confirm`
};

struct EventSet {
  std::vector<Event> events;  // events that alarm first, then open events, then the newest
  std::vector<Suspect> suspects;
};

// Combines the analysis, the runs, and the stored events and decisions.
EventSet find_events(const store::Contents& contents, const std::vector<TrackedSeries>& series,
                     const std::vector<TrackedGroup>& groups, const Analysis& analysis, const Options& options);

// The parts of find_events().

// An event as an earlier check, or `history confirm`, has stored it.
struct Reported {
  std::string id;
  EventKind kind = EventKind::slower;
  EventState state = EventState::open;
  std::vector<std::string> series = {};  // names
  Night last_before = 0;
  Night first_after = 0;
  Night opened = 0;
  std::optional<double> shift = {};
  bool confirmed = false;
  std::map<std::string, Measured> measured = {};  // if confirmed: by the series' names
  Json document = {};

  // Whether a change in this gap may be the same: a new analysis may place it a little differently.
  bool near(Night before, Night after) const {
    constexpr Night nights = 3;
    return last_before - nights < after && first_after + nights > before;
  }
};
// The stored events, without those that cannot be read.
std::vector<Reported> reported_events(const store::Contents& contents);

// Events from changes that alarmed, were confirmed or are small; the other changes become suspects.
EventSet step_events(const std::vector<TrackedSeries>& series, const std::vector<TrackedGroup>& groups,
                     const Analysis& analysis, const std::vector<Reported>& reported, const Options& options);
std::vector<Event> broken_cases(const store::Contents& contents);
std::vector<Event> drifts(const std::vector<TrackedSeries>& series, const Analysis& analysis, const Options& options);
std::vector<Event> replaced_hardware(const store::Contents& contents, const std::vector<TrackedSeries>& series);
std::vector<Event> replaced_machines(const store::Contents& contents, const std::vector<TrackedSeries>& series,
                                     const Analysis& analysis);
// Events of series that follow another without a common night.
std::vector<Event> changed_protocols(const std::vector<TrackedSeries>& series, const Analysis& analysis,
                                     const Options& options);

// Gives events the ids under which they were reported, and adds reported events that the analysis no longer finds.
void match_reported(std::vector<Event>& events, const std::vector<Reported>& reported,
                    const std::vector<TrackedSeries>& series);
// Mutes that last at least until this night and have not been ended, by target.
std::map<std::string, const store::Decision*> mutes_in_force(const std::vector<store::Decision>& decisions,
                                                             Night today);
void apply_decisions(std::vector<Event>& events, const std::vector<TrackedSeries>& series,
                     const store::Contents& contents);

// How much faster a series is after a gap than before it: medians of up to 14 nights, with a 95 % interval by its
// noise. Absent if one side has no night.
std::optional<EventSeries> shift_across(const TrackedSeries& series, const SeriesState& state, std::size_t index,
                                        Night last_before, Night first_after);

// A change of a series' medians of so many nights before and after it, with a 95 % interval by the noise.
EventSeries change_of(std::size_t series, double shift, double sigma, std::size_t before, std::size_t after);

// Sorts the series of an event by the size of their shifts, and fills in machines, shift and interval: medians of
// theirs.
void finish_series(Event& event, const std::vector<TrackedSeries>& series);

// An id from what an event is about.
std::string event_id(std::string_view kind, Night night, std::string_view subject);

// The event whose id begins with `id`. Throws UsageError, with `place`, if there is none or are several.
const Reported& reported_named(const std::vector<Reported>& events, const std::string& id, const std::string& place);

}  // namespace assay::history
