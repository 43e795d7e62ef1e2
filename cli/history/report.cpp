// assay history report: events and series, without a judgement.
#include "cli/history/comment.h"
#include "cli/history/history.h"
#include "cli/options.h"
#include "harness/json/json.h"
#include "reports/history/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace assay::cli {

namespace {

struct HistoryReportFlags {
  std::string store, pattern, since, commit_url;
  JudgeFlags judge;
  Outputs outputs;
};

ExitCode run_history_report(const HistoryReportFlags& flags) {
  history::View view{flags.pattern, {}};
  if (!flags.since.empty()) view.since = history::parse_date(flags.since, "history report: --since");
  check_commit_url("history report", flags.commit_url);
  flags.judge.options("history report");  // says first what is wrong with them
  store::Store store = store::Store::open_existing(store_path(flags.store));
  const history::Options options = flags.judge.options("history report", store, history::OtherSettings::counts);
  history::History history = history::read_history(store, options);
  history.found = history::seen(history, view);
  const report::Document document = history::history_document(history, view);
  write_night("history report", flags.outputs, history, history::outcome_of(history), {flags.commit_url}, view);
  flags.outputs.write_json([&] { return dump_document(history::history_json(history)); });
  flags.outputs.print(document);
  const bool any =
      std::ranges::any_of(history.series, [&](const history::TrackedSeries& one) { return view.shows(one.name); });
  return with_reason(
      "history report", any ? ExitCode::ok : ExitCode::no_data,
      history.series.empty() ? "the history is empty" : fmt::format("no series matches {}", flags.pattern));
}

}  // namespace

Command history_report_command(CLI::App& history) {
  auto flags = std::make_shared<HistoryReportFlags>();
  CLI::App* app = history.add_subcommand("report", "Show events and series; judge nothing");
  add_store_option(*app, flags->store);
  app->add_option("--series", flags->pattern, "Only series whose names contain PATTERN, or match it (* and ?)")
      ->type_name("PATTERN");
  app->add_option("--since", flags->since, "Only from this day on: 2026-01-31")->type_name("DAY");
  flags->judge.add_to(*app);
  add_commit_url_option(*app, flags->commit_url);
  flags->outputs.add_to(*app, {"--html", "--md"});
  return {app, [flags] { return run_history_report(*flags); }};
}

}  // namespace assay::cli
