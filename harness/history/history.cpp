#include "harness/history/history.h"

#include "harness/core/text.h"
#include "harness/history/event_json.h"
#include "harness/history/series/kept.h"
#include "harness/history/series/order.h"
#include "harness/history/series/split.h"
#include "harness/history/series/swaps.h"
#include "harness/history/sight.h"
#include "harness/json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace assay::history {

namespace {

Arrival arrival_of(const std::vector<TrackedSeries>& series, const store::Contents& contents) {
  Arrival arrival;
  arrival.last = last_night(series);
  if (!arrival.last) return arrival;
  std::set<std::size_t> renewed;  // by a series of another protocol
  for (const TrackedSeries& one : series)
    if (one.unbridged) renewed.insert(*one.unbridged);
  const auto tonight = [&](std::size_t i) { return series[i].track.nights.back() == *arrival.last; };
  std::set<std::size_t> moved;  // to another machine, where they ran
  for (const MachineSwap& swap : machine_swaps(series))
    for (const auto& [older, newer] : swap.series)
      if (tonight(newer)) moved.insert(older);
  std::set<std::int64_t> whole;  // some part of it arrived: the others were not to be expected
  for (std::size_t i = 0; i < series.size(); ++i)
    if (tonight(i)) whole.insert(whole_of(series[i].number));
  const auto mutes = mutes_in_force(contents.decisions, day_of(contents, *arrival.last));
  const auto muted = [&](std::size_t i) {
    return std::ranges::any_of(mutes, [&](const auto& mute) { return matches(mute.first, series[i].name); });
  };
  const Night from = std::min(*arrival.last - week, night_before(series, *arrival.last).value_or(INT32_MAX));
  for (std::size_t i = 0; i < series.size(); ++i) {
    arrival.judged += series[i].track.nights.size() >= min_nights ? 1 : 0;
    const auto at = series[i].at_or_before(*arrival.last - 1);
    if (!at || series[i].track.nights[*at] < from || renewed.contains(i)) continue;
    const bool arrived = tonight(i);
    if (!arrived && (muted(i) || whole.contains(whole_of(series[i].number)))) continue;
    ++arrival.expected;
    if (arrived || moved.contains(i)) ++arrival.arrived;
    if (!arrived) (moved.contains(i) ? arrival.replaced : arrival.silent).push_back(i);
  }
  return arrival;
}

const store::Run* run_at(const History& history, std::size_t index, std::optional<std::size_t> place) {
  return place ? &history.contents.runs[static_cast<std::size_t>(history.series[index].runs[*place])] : nullptr;
}

}  // namespace

const store::Run* History::run_before(std::size_t index, Night night) const {
  return run_at(*this, index, series[index].at_or_before(night));
}

const store::Run* History::run_after(std::size_t index, Night night) const {
  return run_at(*this, index, series[index].at_or_after(night));
}

History judged(History history) {
  history.found = find_events(history.contents, history.series, history.groups, history.analysis, history.options);
  history.arrival = arrival_of(history.series, history.contents);
  return history;
}

History read_history(store::Store& store, const Options& options, bool from_scratch) {
  History history;
  history.contents = store.read();
  if (!options.commits.empty())
    history.contents = order_by_commit(std::move(history.contents), options.commits, &history.left_out);
  history.contents = split_by(std::move(history.contents), options.split_by, "--split-by");
  history.series = tracked_series(history.contents);
  history.groups = tracked_groups(history.series);
  history.options = options;
  // The rest of the promise is for what `history confirm` opens.
  Options detector = options;
  detector.false_alarms *= 1 - confirm_share;
  history.analysis = analyse_store(store, history.contents, history.series, history.groups, detector, from_scratch);
  return judged(std::move(history));
}

void save_events(store::Store& store, const History& history) {
  std::vector<store::StoredEvent> events;
  for (const Event& event : history.found.events)
    if (event.state != EventState::small && !event.unseen)
      events.push_back({event.id, std::string(name_of(event.state)), dump_line(event_json(event, history))});
  std::erase_if(events, [&](const store::StoredEvent& one) {
    return std::ranges::any_of(history.contents.events, [&](const auto& known) {
      return known.id == one.id && known.state == one.state && known.document == one.document;
    });
  });
  if (!events.empty()) store.save_events(events);
}

Outcome outcome_of(const History& history, const CheckRules& rules) {
  std::int64_t alarms = 0;
  for (const Event& event : history.found.events)
    alarms += event.alarms() && (event.fresh || !rules.only_fresh) ? 1 : 0;
  if (alarms > 0) return {ExitCode::failed, plural(alarms, "alarm")};
  if (!history.arrival.last) return {ExitCode::no_data, "the history is empty"};
  if (!history.arrival.enough())
    return {ExitCode::no_data,
            fmt::format("only {} of last week's {} series arrived on {}", history.arrival.arrived,
                        history.arrival.expected, night_text(history.contents, *history.arrival.last))};
  if (history.arrival.judged == 0) return {ExitCode::no_data, fmt::format("no series has {} nights yet", min_nights)};
  if (const Sight sight = sight_of(history); rules.strict && sight.is_blind()) return {ExitCode::no_data, sight.text()};
  // A store that somebody restored from a bucket may have missed its last uploads.
  if (rules.max_age && rules.today - day_of(history.contents, *history.arrival.last) > *rules.max_age)
    return {ExitCode::no_data, fmt::format("the newest night is {}, more than {} days ago",
                                           night_text(history.contents, *history.arrival.last), *rules.max_age)};
  return {};
}

}  // namespace assay::history
