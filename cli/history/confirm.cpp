// assay history confirm: decides a suspect tonight, by measuring the last good build and tonight's in turn.
#include "reports/history/confirm.h"
#include "cli/command_sides.h"
#include "cli/history/history.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "reports/history/document.h"
#include "reports/history/series_figure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <ranges>

namespace assay::cli {

namespace {

struct ConfirmFlags {
  std::string store, target, good, bad, metric, budget = "10m";
  JudgeFlags judge;
};

// What is to be confirmed: an event, or a suspect as the event that it would be.
struct Candidate {
  history::Event event;
  bool suspect = false;
};

Candidate of_suspect(const history::Suspect& suspect, const history::History& history) {
  const history::Change& change = suspect.change;
  Candidate candidate{{}, true};
  history::Event& event = candidate.event;
  event.id = suspect.id;
  event.kind = change.shift < 0 ? history::EventKind::slower : history::EventKind::faster;
  event.last_before = change.last_before;
  event.first_after = change.first_after;
  event.opened = *history.arrival.last;
  event.subject = history.series[suspect.series].name;
  event.series.push_back({suspect.series, change.shift, change.interval, change.p, true});
  history::finish_series(event, history.series);
  return candidate;
}

// The largest suspect of one night if `target` is empty, else the suspect or open event whose id begins so; absent if
// there is nothing to confirm. Throws UsageError for no such id and for several.
std::optional<Candidate> candidate(const std::string& target, const history::History& history) {
  const auto& suspects = history.found.suspects;
  if (target.empty()) {
    const history::Suspect* best = history::to_confirm(suspects);
    return best ? std::optional(of_suspect(*best, history)) : std::nullopt;
  }
  std::map<std::string, std::function<Candidate()>> found;
  for (const history::Event& event : history.found.events)
    if (event.state == history::EventState::open && !event.series.empty())
      found[event.id] = [&] { return Candidate{event, false}; };
  for (const history::Suspect& one : suspects) found[one.id] = [&] { return of_suspect(one, history); };
  if (const auto whole = found.find(target); whole != found.end()) return whole->second();
  std::erase_if(found, [&](const auto& one) { return !one.first.starts_with(target); });
  if (found.empty())
    throw UsageError(fmt::format("history confirm: no suspect or open event {}; `assay history check` lists them",
                                 in_quotes(target)));
  if (found.size() > 1)
    throw UsageError(fmt::format("history confirm: several suspects and events begin with {}: {}", in_quotes(target),
                                 fmt::join(std::views::keys(found), ", ")));
  return found.begin()->second();
}

// What a run says it measured, by --label command=..., as a flag to copy; empty if that flag is given, or the run says
// nothing. It is not run unasked: whoever adds a run to the store may have written anything.
std::string as_recorded(const char* flag, const std::string& given, const history::History& history,
                        const store::Run* run) {
  constexpr std::size_t max_bytes = 2000;
  if (!given.empty() || !run) return "";
  const std::string command =
      store::fact_of(history.contents.facts[static_cast<std::size_t>(run->facts)], "label.command");
  return command.empty() ? "" : fmt::format("; recorded: {} {}", flag, one_line(shell_word(command), max_bytes));
}

// Of the last night.
std::size_t earlier_confirmations(const history::History& history) {
  std::size_t count = 0;
  for (const history::Reported& one : history::reported_events(history.contents))
    if ((one.confirmed || one.state == history::EventState::dismissed) && one.opened == *history.arrival.last) ++count;
  return count;
}

// That of a suspect's series, or of the worst of an event's that the commands print.
history::SeriesFigure figure_to_confirm(const history::Event& event, const history::History& history,
                                        const std::string& metric) {
  std::vector<std::size_t> series;
  for (const history::EventSeries& one : event.series) series.push_back(one.series);
  try {
    return {history, std::move(series), metric};
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("history confirm: {}", error.what()));
  }
}

ExitCode run_confirm(const ConfirmFlags& flags) {
  const history::Options options = flags.judge.options("history confirm");
  store::Store store = store::Store::open_existing(store_path(flags.store));
  history::History history = history::read_history(store, options);
  auto chosen = candidate(flags.target, history);
  if (!chosen) {
    say("assay: history confirm: there is no suspect\n");
    return ExitCode::no_data;
  }
  history::Event& event = chosen->event;
  const std::size_t worst = event.series.front().series;
  if (flags.good.empty() || flags.bad.empty())
    throw UsageError(fmt::format(
        "history confirm: give --good and --bad: commands that measure the last good build and tonight's{}{}",
        as_recorded("--good", flags.good, history, history.run_before(worst, event.last_before)),
        as_recorded("--bad", flags.bad, history, history.run_after(worst, event.first_after))));
  ab::Options asked;
  asked.tolerance = options.tolerance;
  asked.error = history::confirm_error(options, earlier_confirmations(history));
  asked.budget = parse_flag("history confirm: --budget", flags.budget, parse_seconds);
  asked.seed = std::random_device()();
  history::SeriesFigure figure = figure_to_confirm(event, history, flags.metric);
  const auto read = [&](const CommandOutput& output, char side) { return std::vector{figure.read(output, side)}; };
  const ab::Outcome outcome = compare_commands("history confirm", flags.good, flags.bad, read, asked).all;
  for (const std::string& remark : figure.remarks()) say("assay: history confirm: {}\n", remark);
  show("{}: {}: {} ({:+.1f} %) after {} pairs\n", event.id, history.series[figure.series()].name,
       name_of(outcome.verdict, "undecided"), 100 * (outcome.ratio - 1), outcome.pairs);
  if (outcome.verdict == Direction::unknown) return ExitCode::no_data;
  const bool slower = event.kind == history::EventKind::slower;
  const bool confirmed = history::is_confirmed(outcome.verdict, slower);
  event.confirmed = confirmed;
  for (history::EventSeries& one : event.series)
    if (confirmed && one.series == figure.series()) one.measured = {std::log(outcome.ratio), *history.arrival.last};
  event.state = confirmed || !chosen->suspect ? history::EventState::open : history::EventState::dismissed;
  if (confirmed || chosen->suspect)
    store.save_events(std::vector<store::StoredEvent>{
        {event.id, std::string(history::name_of(event.state)), history::event_json(event, history).dump()}});
  if (!confirmed)
    fmt::print("{}", chosen->suspect
                         ? "The builds show no such difference: the suspect is dismissed; more nights still judge it.\n"
                         : "The builds show no such difference: look for a cause that is not the build.\n");
  return outcome.verdict == Direction::slower ? ExitCode::failed : ExitCode::ok;
}

}  // namespace

Command history_confirm_command(CLI::App& history) {
  auto flags = std::make_shared<ConfirmFlags>();
  CLI::App* app = history.add_subcommand("confirm", "Decides a suspect tonight: measures both builds in turn");
  add_store_option(*app, flags->store);
  app->add_option("event", flags->target, "A suspect's or event's id (default: the largest suspect of one night)");
  app->add_option("--good", flags->good,
                  "Command that measures the last good build; without it, the one its run's label names is shown");
  app->add_option("--bad", flags->bad, "Command that measures tonight's; the same");
  app->add_option("--metric", flags->metric,
                  "What in their output is the suspect's figure, as of `assay ab`: time, lines, or NAME, see below.\n"
                  "Without it: the figure named as the suspect's case, or as its metric");
  app->add_option("--budget", flags->budget, "Stop after this long")->capture_default_str();
  flags->judge.add_to(*app);
  app->footer(
      "False alarms stay within the promise: a tenth of it is kept for confirmations.\n"
      "Exit codes: 1 slower, and open now if that was suspected; 0 dismissed, or faster; 2 the commands do not print\n"
      "the suspect's figure; 3 undecided, or nothing to confirm.\n\n" +
      std::string(metric_grammar));
  return {app, [flags] { return run_confirm(*flags); }};
}

}  // namespace assay::cli
