// Events that are no steps of the detector's: broken cases, drifts, replaced hardware, changed protocols.
#include "harness/core/text.h"
#include "harness/history/events/events.h"
#include "harness/history/series/order.h"
#include "harness/history/series/swaps.h"
#include "harness/statistics/statistics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace assay::history {

namespace {

std::string count_of(const Event& event, const std::vector<TrackedSeries>& series) {
  return event.series.size() == 1 ? series[event.series.front().series].name
                                  : fmt::format("{} series", event.series.size());
}

// How much faster a series is than one that ended before it: medians of up to 14 nights, with a 95 % interval by the
// older one's noise.
EventSeries between(const TrackedSeries& older, const SeriesState& state, const TrackedSeries& newer,
                    std::size_t index) {
  constexpr std::size_t nights = 14;
  const auto &was = older.track.values, &is = newer.track.values;
  const std::size_t n = std::min(nights, was.size()), m = std::min(nights, is.size());
  const double shift = median(std::span(is).first(m)) + newer.offset - (median(std::span(was).last(n)) + older.offset);
  return change_of(index, shift, std::max(state.sigma, robust_sigma(std::span(was).last(n))), m, n);
}

}  // namespace

std::vector<Event> broken_cases(const store::Contents& contents) {
  struct CaseState {
    std::optional<Night> held;
    std::optional<std::size_t> event;  // that is open
  };
  std::map<std::pair<std::string, std::string>, CaseState> cases;
  std::vector<Event> events;
  for (const store::Run& run : contents.runs) {
    for (const auto& [key, reason] : run.broken) {
      CaseState& state = cases[{run.machine, key}];
      if (!state.held || state.event) continue;
      Event event;
      event.kind = EventKind::broke;
      event.last_before = *state.held;
      event.first_after = event.opened = run.night;
      event.machines = {run.machine};
      event.subject = fmt::format("{}: {}", run.machine, key);
      event.detail = reason;
      event.id = event_id("broke", run.night, event.subject);
      state.event = events.size();
      events.push_back(std::move(event));
    }
    for (const std::string& key : run.held) {
      CaseState& state = cases[{run.machine, key}];
      if (state.event) {
        events[*state.event].state = EventState::recovered;
        events[*state.event].closed = run.night;
        state.event.reset();
      }
      state.held = run.night;
    }
  }
  return events;
}

std::vector<Event> drifts(const std::vector<TrackedSeries>& series, const Analysis& analysis, const Options& options) {
  std::map<std::pair<std::string, bool>, Event> by_machine;
  for (std::size_t i = 0; i < analysis.series.size(); ++i) {
    const auto& drift = analysis.series[i].drift;
    if (!drift || std::abs(drift->shift) < options.tolerance) continue;
    const bool slower = drift->shift < 0;
    if (slower ? drift->interval.high >= 0 : drift->interval.low <= 0) continue;
    const auto [at, fresh] = by_machine.try_emplace({series[i].identity.machine, slower});
    Event& event = at->second;
    event.kind = EventKind::drift;
    if (fresh || drift->since < event.last_before) event.last_before = drift->since;
    event.first_after = std::max(event.first_after, series[i].track.nights.back());
    event.series.push_back({i, drift->shift, drift->interval, 1, true});
  }
  std::vector<Event> all;
  for (auto& [key, event] : by_machine) {
    finish_series(event, series);
    event.subject = event.series.size() == 1 ? series[event.series.front().series].name
                                             : fmt::format("{} on {}", count_of(event, series), key.first);
    event.opened = event.first_after;
    event.id = event_id(key.second ? "drift slower" : "drift faster", event.last_before, key.first);
    all.push_back(std::move(event));
  }
  return all;
}

std::vector<Event> replaced_hardware(const store::Contents& contents, const std::vector<TrackedSeries>& series) {
  std::map<std::pair<Night, std::string>, Event> by_night;
  for (std::size_t i = 0; i < series.size(); ++i)
    for (const Night night : series[i].track.replaced) {
      const auto before = series[i].at_or_before(night - 1), after = series[i].at_or_after(night);
      if (!before || !after) continue;
      Event& event = by_night[{night, series[i].identity.machine}];
      event.last_before = std::max(event.last_before, series[i].track.nights[*before]);
      if (const auto moved = shift_across(series[i], {}, i, night - 1, night)) event.series.push_back(*moved);
    }
  std::vector<Event> all;
  for (auto& [key, event] : by_night) {
    event.kind = EventKind::hardware_replaced;
    event.state = EventState::noted;
    event.first_after = event.opened = key.first;
    event.subject = key.second;
    event.id = event_id("hardware_replaced", key.first, key.second);
    for (const store::Run& run : contents.runs)
      if (run.machine == key.second && run.night == key.first && !run.hardware.empty())
        event.detail = fmt::format("other GPUs from run {} on", run.id);
    finish_series(event, series);
    event.interval.reset();  // its noise is not known apart
    all.push_back(std::move(event));
  }
  return all;
}

std::vector<Event> replaced_machines(const store::Contents& contents, const std::vector<TrackedSeries>& series,
                                     const Analysis& analysis) {
  std::vector<Event> all;
  for (const MachineSwap& swap : machine_swaps(series)) {
    Event event;
    event.kind = EventKind::hardware_replaced;
    event.state = EventState::noted;
    event.last_before = std::min(swap.last_before, swap.first_after);
    event.first_after = event.opened = swap.first_after;
    event.subject = fmt::format("{} in place of {}", swap.machine, fmt::join(swap.from, ", "));
    event.detail = fmt::format("{} series of {} ended on {}; the same cases have new ones", swap.series.size(),
                               fmt::join(swap.from, ", "), night_text(contents, swap.last_before));
    event.id = event_id("hardware_replaced", swap.first_after, swap.machine);
    for (const auto& [older, newer] : swap.series)
      if (const auto& was = series[older].identity, &is = series[newer].identity;
          was.protocol == is.protocol && was.conditions == is.conditions && was.unit == is.unit)
        event.series.push_back(between(series[older], analysis.series[older], series[newer], newer));
    finish_series(event, series);
    // Several old machines may have run a case: the shift is over all of them, but each new series is named once.
    std::set<std::size_t> named;
    std::erase_if(event.series, [&](const EventSeries& one) { return !named.insert(one.series).second; });
    event.machines = {swap.machine};
    event.machines.insert(event.machines.end(), swap.from.begin(), swap.from.end());
    all.push_back(std::move(event));
  }
  return all;
}

std::vector<Event> changed_protocols(const std::vector<TrackedSeries>& series, const Analysis& analysis,
                                     const Options& options) {
  constexpr double sigmas = 3;
  std::map<std::pair<Night, EventState>, Event> by_night;
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (!series[i].unbridged) continue;
    const std::size_t before = *series[i].unbridged;
    EventSeries change = between(series[before], analysis.series[before], series[i], i);
    const double error = (change.interval.high - change.shift) / 1.96;
    change.alarmed = change.shift < -options.tolerance && change.shift + sigmas * error < 0;
    Event& event = by_night[{series[i].track.nights.front(), change.alarmed ? EventState::open : EventState::noted}];
    event.last_before = std::max(event.last_before, series[before].track.nights.back());
    event.series.push_back(change);
  }
  std::vector<Event> all;
  for (auto& [key, event] : by_night) {
    event.kind = EventKind::changed_protocol;
    event.state = key.second;
    event.first_after = event.opened = key.first;
    event.last_before = std::min(event.last_before, key.first);
    finish_series(event, series);
    event.subject = count_of(event, series);
    event.detail = "measured in another way, and no night ran both: a change of speed cannot be separated from it";
    std::string first = series[event.series.front().series].name;
    for (const EventSeries& one : event.series) first = std::min(first, series[one.series].name);
    event.id =
        event_id(key.second == EventState::open ? "changed_protocol slower" : "changed_protocol", key.first, first);
    all.push_back(std::move(event));
  }
  return all;
}

}  // namespace assay::history
