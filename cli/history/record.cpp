// assay history record: runs a command and adds what it measured.
#include "reports/history/record.h"
#include "cli/formats.h"
#include "cli/history/history.h"
#include "cli/history/measured.h"
#include "cli/options.h"
#include "harness/core/streams.h"
#include "harness/figures/printed.h"
#include "reports/history/document.h"

#include <memory>

namespace assay::cli {

namespace {

struct RecordFlags {
  std::string store, better, suite, at;
  std::vector<std::string> words, counts;
  report::ToolCommand command;
  PlaceFlags place;
  JudgeFlags judge;
  bool check = false;
};

// As `history check` without flags.
ExitCode judge_night(const char* verb, store::Store& store, const JudgeFlags& judge) {
  const history::Options options = judge.options(verb, store, history::OtherSettings::refused);
  const history::History history = history::read_history(store, options);
  history::keep_settings(store, options);
  history::save_events(store, history);
  const history::Outcome outcome = history::outcome_of(history);
  Outputs().print(history::terminal_document(history));
  return with_reason(verb, outcome.code, outcome.why);
}

ExitCode run_record(const RecordFlags& flags) {
  constexpr const char* verb = "history record";
  report::ToolCommand command = flags.command;
  command.shell = report::shell_line(flags.words);
  command.better = from_word<Better>(flags.better);
  flags.judge.options(verb);  // says first what is wrong with them
  const std::vector<report::CountedBy> counts = counts_of(verb, flags.counts);
  const std::filesystem::path file = store_path(flags.store);
  store::Store store = store::Store::open(file);  // a store that cannot be opened costs no measurement
  results_are_stored();
  history::Place place = flags.place.here(verb, command.shell);
  place.suite = flags.suite;
  store::AddOptions options = flags.place.options(place);
  if (!flags.at.empty()) options.at = moment_of(std::string(verb) + ": --at", flags.at);
  Children children("the command");
  bool counted = true;
  report::ToolOutput output =
      measure_and_count(verb, command, children, counts, flags.suite.empty() ? "whole_command" : flags.suite, counted);
  // Equal figures of two nights are two runs, however soon one is recorded after the other; of one night they are one.
  if (options.at) output.started = *options.at, output.moment = 0;
  const std::string problem = output.problem;
  const std::vector<RunData> runs =
      history::recorded_runs(std::move(output), place, store.read(place.checkout.branch), options);
  ExitCode code = ExitCode::ok;
  if (!problem.empty()) {
    say("assay: {}: the command {}\n", verb, problem);
    code = ExitCode::failed;
  }
  if (runs.empty()) {
    say("assay: {}: nothing was added\n", verb);
    return worst(code, ExitCode::no_data);
  }
  add_and_tell(store, runs, options);
  if (!counted) code = worst(code, ExitCode::no_data);
  return flags.check ? worst(code, judge_night(verb, store, flags.judge)) : code;
}

}  // namespace

Command history_record_command(CLI::App& history) {
  auto flags = std::make_shared<RecordFlags>();
  CLI::App* app = history.add_subcommand("record", "Run a command and add what it measured");
  app->add_option("command", flags->words, "The command, behind --; a single word is read by a shell")->required();
  add_store_option(*app, flags->store);
  app->add_option("--name", flags->suite, "Of what the command measures, if the store has figures of several commands");
  app->add_flag("--check", flags->check, "Then judge the newest night, as `history check` does");
  app->add_option("--file", flags->command.files, "File that it writes its figures to; may be given several times")
      ->allow_extra_args(false)
      ->type_name("FILE");
  app->add_option("--metric", flags->command.metrics,
                  "Take only the figure NAME, see below, from any output; may be given several times")
      ->allow_extra_args(false)
      ->type_name("NAME");
  add_better_option(*app, flags->better);
  app->add_option(
         "--counts", flags->counts,
         "Count what the whole command does, of which 0.1 % more is seen the same night; may be given several\n"
         "times: perf (instructions, as it runs), valgrind (instructions) or heap (allocations, allocated and\n"
         "peak bytes); the last two by valgrind in another run, of programs without AVX-512. With {cases} in\n"
         "the command, for a regular expression of names, those of each case, in a run of its own")
      ->allow_extra_args(false)
      ->check(CLI::IsMember(all_words<report::CountedBy>()));
  flags->place.add_to(*app);
  app->add_option("--at", flags->at, "When it was measured, instead of now: 2026-01-31 or 2026-01-31T12:00:00Z");
  flags->judge.add_to(*app);
  app->footer(
      fmt::format(
          "Recognised, on stdout or in a file that the command writes: {}.\n"
          "Commit, branch and whether files differ come from git, the rest from this machine.\n"
          "Exit codes: 1 the command failed: what it measured is kept, its other cases have failed; 2 it prints no\n"
          "figure that is known; with --check also those of `history check`.\n\n",
          report::recognised_formats) +
      metric_grammar);
  return {app, [flags] { return run_record(*flags); }};
}

}  // namespace assay::cli
