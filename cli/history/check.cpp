// assay history check and reanalyse: what became slower?
#include "cli/files.h"
#include "cli/history/history.h"
#include "harness/core/streams.h"
#include "reports/history/document.h"
#include "reports/render/render.h"

#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <memory>

namespace assay::cli {

namespace {

struct CheckFlags {
  std::string store, branch;
  JudgeFlags judge;
  HistoryOutputs outputs{.with_junit = true};
  history::CheckRules rules;
};

ExitCode check_branch(const CheckFlags& flags, store::Store& store, const history::History& main) {
  const history::BranchComparison comparison = history::compare_branch(store.read(flags.branch), flags.branch, main);
  const report::Document document = history::branch_document(comparison, main);
  flags.outputs.write("history check", document, document, history::branch_json(comparison, main));
  return with_reason("history check", comparison.exit_code(flags.rules.strict),
                     comparison.changes.empty() ? fmt::format("no run of branch {} can be compared", flags.branch)
                                                : comparison.blind_text());
}

ExitCode run_check(const CheckFlags& flags) {
  const std::filesystem::path path = store_path(flags.store);
  if (!std::filesystem::exists(path))
    return with_reason("history check", ExitCode::no_data,
                       fmt::format("{}: no such history; was it lost?", path.string()));
  if (!flags.branch.empty() && !flags.outputs.junit.empty())
    throw UsageError("history check: --junit: the runs of a branch are no tests; leave out --pr or --junit");
  const history::Options options = flags.judge.options("history check");
  store::Store store = store::Store::open_existing(path);
  const history::History history = history::read_history(store, options);
  if (!flags.branch.empty()) return check_branch(flags, store, history);
  history::save_events(store, history);
  history::CheckRules rules = flags.rules;
  rules.today = static_cast<history::Night>(std::time(nullptr) / 86400);
  const history::Outcome outcome = history::outcome_of(history, rules);
  flags.outputs.write("history check", history::history_document(history), history::short_document(history),
                      history::history_json(history), [&] { return history::history_suite(history, outcome); });
  return with_reason("history check", outcome.code, outcome.why);
}

struct ReanalyseFlags {
  std::string store;
  JudgeFlags judge;
};

ExitCode run_reanalyse(const ReanalyseFlags& flags) {
  const history::Options options = flags.judge.options("history reanalyse");
  store::Store store = store::Store::open_existing(store_path(flags.store));
  const history::History history = history::read_history(store, options, true);
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

}  // namespace

Command history_check_command(CLI::App& history) {
  auto flags = std::make_shared<CheckFlags>();
  CLI::App* app = history.add_subcommand("check", "Did anything become slower? Judges the newest night");
  add_store_option(*app, flags->store);
  flags->judge.add_to(*app);
  app->add_flag("--new", flags->rules.only_fresh, "Fail only for events that no earlier check reported");
  app->add_flag("--strict", flags->rules.strict, "Exit with 3 if most series show no step below 100 %");
  app->add_option("--pr", flags->branch, "Compare the runs of BRANCH with the main ones, and store nothing");
  app->add_option("--max-age", flags->rules.max_age, "Exit with 3 if the newest night is more than DAYS ago")
      ->check(CLI::Range(0, 10000));
  flags->outputs.add_to(*app);
  app->footer(
      "Exit codes: 1 something became slower, or a case that held broke, and nobody has acknowledged, muted or "
      "expected\n"
      "it; 3 under 80 % of last week's series arrived, no series has 15 nights, the history is empty or lost, or\n"
      "(--strict) most series show no step below 100 %.");
  return {app, [flags] { return run_check(*flags); }};
}

Command history_reanalyse_command(CLI::App& history) {
  auto flags = std::make_shared<ReanalyseFlags>();
  CLI::App* app = history.add_subcommand("reanalyse", "Analyses all nights again; decisions and ids stay");
  add_store_option(*app, flags->store);
  flags->judge.add_to(*app);
  return {app, [flags] { return run_reanalyse(*flags); }};
}

}  // namespace assay::cli
