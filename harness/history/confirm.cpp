#include "harness/history/confirm.h"

#include "harness/core/text.h"
#include "harness/history/event_json.h"
#include "harness/history/series_figure.h"
#include "harness/json/json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace assay::history {

namespace {

// 0 of a step within the range of its series' excursions.
double size_of(const Suspect& suspect) { return suspect.change.same_night ? std::abs(suspect.change.shift) : 0; }

Candidate of_suspect(const Suspect& suspect, const History& history) {
  const Change& change = suspect.change;
  Candidate candidate{{}, true};
  Event& event = candidate.event;
  event.id = suspect.id;
  event.kind = change.shift < 0 ? EventKind::slower : EventKind::faster;
  event.last_before = change.last_before;
  event.first_after = change.first_after;
  event.opened = *history.arrival.last;
  event.subject = history.series[suspect.series].name;
  event.series.push_back({suspect.series, change.shift, change.interval, change.p, true});
  finish_series(event, history.series);
  return candidate;
}

// What a run says it measured, by --label command=..., as a flag to copy; empty if that flag is given, or the run says
// nothing.
std::string as_recorded(const char* flag, const std::string& given, const History& history, const store::Run* run) {
  constexpr std::size_t max_bytes = 2000;
  if (!given.empty() || !run) return "";
  const std::string command =
      store::fact_of(history.contents.facts[static_cast<std::size_t>(run->facts)], "label.command");
  return command.empty() ? "" : fmt::format("; recorded: {} {}", flag, one_line(shell_word(command), max_bytes));
}

// Confirmations of the last night.
std::size_t earlier_confirmations(const History& history) {
  std::size_t count = 0;
  for (const Reported& one : reported_events(history.contents))
    if ((one.confirmed || one.state == EventState::dismissed) && one.opened == *history.arrival.last) ++count;
  return count;
}

SeriesFigure figure_to_confirm(const Event& event, const History& history, const std::string& metric) {
  std::vector<std::size_t> series;
  for (const EventSeries& one : event.series) series.push_back(one.series);
  try {
    return {history, std::move(series), metric};
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("history confirm: {}", error.what()));
  }
}

}  // namespace

const Suspect* to_confirm(const std::vector<Suspect>& suspects) {
  const Suspect* best = nullptr;
  for (const Suspect& one : suspects)
    if (!one.dismissed && (!best || size_of(one) > size_of(*best))) best = &one;
  return best;
}

double confirm_error(const Options& options, std::size_t earlier) {
  return std::ldexp(options.false_alarms * confirm_share, -1 - static_cast<int>(earlier));
}

bool is_confirmed(Direction verdict, bool slower) {
  return verdict == (slower ? Direction::slower : Direction::faster);
}

std::optional<Candidate> candidate_of(const History& history, const std::string& id) {
  const auto& suspects = history.found.suspects;
  if (id.empty()) {
    const Suspect* best = to_confirm(suspects);
    return best ? std::optional(of_suspect(*best, history)) : std::nullopt;
  }
  std::map<std::string, std::function<Candidate()>> found;
  for (const Event& event : history.found.events)
    if (event.state == EventState::open && !event.series.empty())
      found[event.id] = [&] { return Candidate{event, false}; };
  for (const Suspect& one : suspects) found[one.id] = [&] { return of_suspect(one, history); };
  if (const auto whole = found.find(id); whole != found.end()) return whole->second();
  std::erase_if(found, [&](const auto& one) { return !one.first.starts_with(id); });
  if (found.empty())
    throw UsageError(
        fmt::format("history confirm: no suspect or open event {}; `assay history check` lists them", in_quotes(id)));
  if (found.size() > 1) {
    std::vector<std::string> ids;
    for (const auto& one : found) ids.push_back(one.first);
    throw UsageError(fmt::format("history confirm: several suspects and events begin with {}: {}", in_quotes(id),
                                 fmt::join(ids, ", ")));
  }
  return found.begin()->second();
}

bool Confirmation::is_kept() const {
  return outcome.verdict != Direction::unknown && (is_confirmed() || candidate.suspect);
}

std::string Confirmation::meaning() const {
  if (outcome.verdict == Direction::unknown)
    return candidate.suspect ? "Undecided: nothing is stored; more nights still judge the suspect."
                             : "Undecided: nothing is stored; the event stays open.";
  if (is_confirmed()) return "";
  return candidate.suspect ? "The builds show no such difference: the suspect is dismissed; more nights still judge it."
                           : "The builds show no such difference: look for a cause that is not the build.";
}

ExitCode Confirmation::code() const {
  if (outcome.verdict == Direction::unknown) return ExitCode::no_data;
  return outcome.verdict == Direction::slower ? ExitCode::failed : ExitCode::ok;
}

Confirmation confirm(const History& history, Candidate candidate, const ConfirmRequest& request,
                     const Measure& measure) {
  Event& event = candidate.event;
  const std::size_t worst = event.series.front().series;
  if (request.good.empty() || request.bad.empty())
    throw UsageError(fmt::format(
        "history confirm: give --good and --bad: commands that measure the last good build and tonight's{}{}",
        as_recorded("--good", request.good, history, history.run_before(worst, event.last_before)),
        as_recorded("--bad", request.bad, history, history.run_after(worst, event.first_after))));
  SeriesFigure figure = figure_to_confirm(event, history, request.metric);
  const auto read = [&](const CommandOutput& output, char side) { return std::vector{figure.read(output, side)}; };
  const ab::Outcome outcome = measure({"history confirm", request.good, request.bad, read},
                                      {.tolerance = history.options.tolerance,
                                       .error = confirm_error(history.options, earlier_confirmations(history)),
                                       .budget = request.budget,
                                       .seed = request.seed})
                                  .all;
  if (outcome.verdict != Direction::unknown) {
    event.confirmed = is_confirmed(outcome.verdict, event.kind == EventKind::slower);
    for (EventSeries& one : event.series)
      if (event.confirmed && one.series == figure.series())
        one.measured = {std::log(outcome.ratio), *history.arrival.last};
    event.state = event.confirmed || !candidate.suspect ? EventState::open : EventState::dismissed;
  }
  return {std::move(candidate), figure.series(), outcome, figure.remarks()};
}

void save_confirmation(store::Store& store, const Confirmation& confirmation, const History& history) {
  const Event& event = confirmation.candidate.event;
  if (confirmation.is_kept())
    store.save_events(std::vector<store::StoredEvent>{
        {event.id, std::string(name_of(event.state)), dump_line(event_json(event, history))}});
}

}  // namespace assay::history
