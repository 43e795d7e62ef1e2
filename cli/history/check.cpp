// assay history check: what became slower?
#include "cli/history/comment.h"
#include "cli/history/history.h"
#include "cli/history/tonight.h"
#include "cli/options.h"
#include "harness/core/streams.h"
#include "harness/json/json.h"
#include "reports/history/document.h"
#include "reports/render/render.h"

#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <memory>

namespace assay::cli {

namespace {

struct HistoryCheckFlags {
  std::string store, branch, pr, commit_url;
  JudgeFlags judge;
  Outputs outputs;
  history::CheckRules rules;
  BuildFlags builds;
  bool again = false, confirm = false;
};

// Judges nothing: what people decided stays, and so do the ids of events.
ExitCode analyse_again(const HistoryCheckFlags& flags) {
  const Outputs& files = flags.outputs;
  if (flags.rules.only_fresh || flags.rules.strict || flags.rules.max_age || !flags.branch.empty() || flags.confirm ||
      !(files.json + files.html + files.markdown + files.junit).empty())
    throw UsageError("history check: --again judges no night: check once more without it for that");
  flags.judge.options("history check");  // says first what is wrong with them
  store::Store store = store::Store::open_existing(store_path(flags.store));
  const history::Options options = flags.judge.options("history check", store, history::OtherSettings::changes);
  const history::History history = history::read_history(store, options, true);
  history::keep_settings(store, options);
  history::save_events(store, history);
  std::size_t fresh = 0, withdrawn = 0;
  for (const history::Event& event : history.found.events) {
    fresh += event.fresh ? 1 : 0;
    withdrawn += event.state == history::EventState::withdrawn ? 1 : 0;
  }
  fmt::print("{} series, {} nights, {} events: {} not reported before, {} withdrawn\n", history.series.size(),
             history.analysis.nights.size(), history.found.events.size(), fresh, withdrawn);
  return ExitCode::ok;
}

ExitCode run_history_check(const HistoryCheckFlags& flags) {
  if (flags.again) return analyse_again(flags);
  if (!flags.pr.empty()) return check_pull_request(flags.pr, flags.builds, flags.judge, flags.store, flags.outputs);
  const std::filesystem::path path = store_path(flags.store);
  if (!std::filesystem::exists(path))
    return with_reason("history check", ExitCode::no_data,
                       fmt::format("{}: no such history; was it lost?", path.string()));
  if (flags.confirm) flags.builds.require("history check");
  check_commit_url("history check", flags.commit_url);
  if (!flags.branch.empty() && !flags.outputs.junit.empty())
    throw UsageError("history check: --junit: the runs of a branch are no tests; leave out --branch or --junit");
  flags.judge.options("history check");  // says first what is wrong with them
  store::Store store = store::Store::open_existing(path);
  const history::Options options = flags.judge.options(
      "history check", store, flags.branch.empty() ? history::OtherSettings::refused : history::OtherSettings::counts);
  if (!flags.branch.empty() && !options.commits.empty())
    throw UsageError("history check: --branch: a branch is compared by nights: give --order night");
  history::History history = history::read_history(store, options);
  if (!flags.branch.empty()) return check_branch(flags.branch, flags.rules.strict, store, history, flags.outputs);
  history::keep_settings(store, options);
  if (flags.confirm) history = decide_tonight("history check", flags.builds, store, std::move(history));
  history::save_events(store, history);
  history::CheckRules rules = flags.rules;
  rules.today = static_cast<history::Night>(std::time(nullptr) / 86400);
  const history::Outcome outcome = history::outcome_of(history, rules);
  flags.outputs.write_junit([&] { return report::render_junit(history::history_suite(history, outcome)); });
  write_night("history check", flags.outputs, history, outcome,
              {flags.commit_url, flags.builds.build, flags.builds.run});
  flags.outputs.write_json([&] { return dump_document(history::history_json(history)); });
  flags.outputs.print(history::terminal_document(history));
  return with_reason("history check", outcome.code, outcome.why);
}

}  // namespace

Command history_check_command(CLI::App& history) {
  auto flags = std::make_shared<HistoryCheckFlags>();
  CLI::App* app = history.add_subcommand("check", "Judge the newest night: did anything become slower?");
  add_store_option(*app, flags->store);
  flags->judge.add_to(*app);
  app->add_flag("--new", flags->rules.only_fresh, "Fail only for events that no earlier check reported");
  app->add_flag("--strict", flags->rules.strict, "Exit with 3 if most series show no step below 100 %");
  app->add_option("--branch", flags->branch, "Compare the runs of this branch with the main ones; store nothing");
  app->add_option("--max-age", flags->rules.max_age, "Exit with 3 if the newest night is more than DAYS ago")
      ->type_name("DAYS")
      ->check(CLI::Range(0, 10000));
  app->add_flag("--confirm", flags->confirm,
                "Measure the night's suspects now: the last good build beside tonight's, and bisect what is slower");
  app->add_option("--pr", flags->pr, "Judge HEAD against where it left BASE, both built and measured here")
      ->type_name("BASE");
  flags->builds.add_to(*app);
  add_commit_url_option(*app, flags->commit_url);
  app->add_flag("--again", flags->again, "Analyse all nights again, and judge none; decisions and ids stay");
  flags->outputs.add_to(*app, {"--html", "--md", "--junit"});
  app->footer(
      "--pr measures first what the history suspects, if --run has {cases} for a regular expression of their names.\n"
      "Exit codes: 1 something became slower, or a case that held broke, and nobody has acknowledged, muted or "
      "expected\n"
      "it; 3 under 80 % of last week's series arrived, no series has 15 nights, the history is empty or lost, or\n"
      "(--strict) most series show no step below 100 %.");
  return {app, [flags] { return run_history_check(*flags); }};
}

}  // namespace assay::cli
