// assay history confirm: decides a suspect tonight, by measuring the last good build and tonight's in turn.
#include "harness/history/confirm.h"
#include "cli/history/history.h"
#include "harness/ab/where.h"
#include "harness/core/streams.h"
#include "harness/core/units.h"

#include <memory>
#include <random>

namespace assay::cli {

namespace {

struct ConfirmFlags {
  std::string store, target, budget = "10m";
  history::ConfirmRequest request;
  JudgeFlags judge;
};

ExitCode run_confirm(const ConfirmFlags& flags) {
  flags.judge.options("history confirm");  // says first what is wrong with them
  store::Store store = store::Store::open_existing(store_path(flags.store));
  const history::Options options = flags.judge.options("history confirm", store, history::OtherSettings::refused);
  const history::History history = history::read_history(store, options);
  auto candidate = history::candidate_of(history, flags.target);
  if (!candidate) {
    say("assay: history confirm: there is no suspect\n");
    return ExitCode::no_data;
  }
  history::ConfirmRequest request = flags.request;
  request.budget = parse_flag("history confirm: --budget", flags.budget, parse_seconds);
  request.seed = std::random_device()();
  Children children("the measurements");
  const auto run_one = [&](const ProcessRun& run) { return children.run(run); };
  const auto measure = [&](const auto& commands, const auto& asked) {
    return ab::run_commands(commands, asked, run_one);
  };
  const history::Confirmation found = history::confirm(history, std::move(*candidate), request, measure);
  for (const std::string& remark : found.remarks) say("assay: history confirm: {}\n", remark);
  for (const history::MeasuredSeries& one : found.parts)
    show("{}: {}: {} ({:+.1f} %) after {} pairs\n", found.candidate.event.id, history.series[one.series].name,
         name_of(one.outcome.verdict, "undecided"), 100 * (one.outcome.ratio - 1), one.outcome.pairs);
  history::save_confirmation(store, found, history);
  if (found.is_confirmed())
    show("own time of functions: {}\n", ab::text_of(ab::where_time_goes(request.good, request.bad, run_one)));
  if (const std::string meaning = found.meaning(); !meaning.empty()) show("{}\n", meaning);
  return found.code();
}

}  // namespace

Command history_confirm_command(CLI::App& history) {
  auto flags = std::make_shared<ConfirmFlags>();
  history::ConfirmRequest& request = flags->request;
  CLI::App* app = history.add_subcommand("confirm", "Decide a suspect tonight: measure both builds in turn");
  add_store_option(*app, flags->store);
  app->add_option("event", flags->target, "A suspect's or event's id (default: the largest suspect of one night)");
  app->add_option("--good", request.good,
                  "Command that measures the last good build; without it, the one its run's label names is shown");
  app->add_option("--bad", request.bad, "Command that measures tonight's; the same");
  app->add_option("--metric", request.metric,
                  "What in their output is the suspect's figure, as of `assay ab`: time, lines, or NAME, see below.\n"
                  "Without it: the figure named as the suspect's case, or as its metric");
  app->add_option("--budget", flags->budget, "Time for everything (90s, 10m, 1h)")->capture_default_str();
  flags->judge.add_to(*app);
  app->footer(
      "False alarms stay within the promise: a tenth of it is kept for confirmations.\n"
      "Exit codes: 1 slower, and open now if that was suspected; 0 dismissed, or faster; 2 the commands do not print\n"
      "the suspect's figure; 3 undecided, or nothing to confirm.\n\n" +
      std::string(metric_grammar));
  return {app, [flags] { return run_confirm(*flags); }};
}

}  // namespace assay::cli
