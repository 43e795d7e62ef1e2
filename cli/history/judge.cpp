// assay history check, report and reanalyse: what became slower.
#include "cli/files.h"
#include "cli/history/history.h"
#include "harness/core/host.h"
#include "harness/core/streams.h"
#include "harness/history/branch.h"
#include "harness/json/json.h"
#include "reports/history/document.h"
#include "reports/render/render.h"

#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>

namespace assay::cli {

namespace {

namespace fs = std::filesystem;

struct Files {
  std::string html, markdown, json, junit;

  void add_to(CLI::App& app, bool with_junit) {
    app.add_option("--html", html, "Write one HTML page to FILE");
    app.add_option("--md", markdown, "Write at most 20 lines of Markdown to FILE (- for stdout)");
    app.add_option("--json", json, "Write everything as JSON to FILE (- for stdout)");
    if (with_junit) app.add_option("--junit", junit, "Write JUnit XML to FILE: a test per machine and family");
  }
  void write(const char* verb, const report::Document& page, const report::Document& brief, const Json& data) const {
    if (!html.empty()) write_named_file(verb, html, report::render_html(page));
    if (!markdown.empty()) write_named_file(verb, markdown, report::render_markdown(brief));
    if (!json.empty()) write_named_file(verb, json, dump_document(data));
    print(page, {html, markdown, json, junit});
  }
};

struct CheckFlags {
  std::string store, branch;
  JudgeFlags judge;
  Files files;
  bool fresh = false, strict = false;
  std::optional<int> max_age;
};

ExitCode with_reason(const char* verb, ExitCode code, const std::string& why) {
  if (code == ExitCode::no_data) say("assay: {}: {}\n", verb, why);
  return code;
}

// Days since the newest night; a store that somebody restored from a bucket may have missed its last uploads.
std::optional<std::string> too_old(const history::History& history, std::optional<int> max_age) {
  if (!max_age || !history.arrival.last) return std::nullopt;
  const auto today = static_cast<history::Night>(std::time(nullptr) / 86400);
  if (today - *history.arrival.last <= *max_age) return std::nullopt;
  return fmt::format("the newest night is {}, more than {} days ago", history::date_text(*history.arrival.last),
                     *max_age);
}

ExitCode check_branch(const CheckFlags& flags, store::Store& store, const history::History& main) {
  const history::BranchComparison comparison = history::compare_branch(store.read(flags.branch), flags.branch, main);
  const report::Document document = history::branch_document(comparison, main);
  flags.files.write("history check", document, document, history::branch_json(comparison, main));
  return with_reason("history check", comparison.exit_code(flags.strict),
                     comparison.changes.empty() ? fmt::format("no run of branch {} can be compared", flags.branch)
                                                : comparison.blind_text());
}

ExitCode run_check(const CheckFlags& flags) {
  const fs::path path = store_path(flags.store);
  if (!fs::exists(path))
    return with_reason("history check", ExitCode::no_data,
                       fmt::format("{}: no such history; was it lost?", path.string()));
  const history::Options options = flags.judge.options("history check");
  store::Store store = store::Store::open_existing(path);
  const history::History history = history::read_history(store, options);
  if (!flags.branch.empty()) return check_branch(flags, store, history);
  history::save_events(store, history);
  history::Outcome outcome = history::outcome_of(history, flags.fresh, flags.strict);
  if (const auto old = too_old(history, flags.max_age); old && outcome.code == ExitCode::ok)
    outcome = {ExitCode::no_data, *old};
  if (!flags.files.junit.empty())
    write_named_file("history check", flags.files.junit,
                     report::render_junit(history::history_suite(history, outcome)));
  flags.files.write("history check", history::history_document(history), history::short_document(history),
                    history::history_json(history));
  return with_reason("history check", outcome.code, outcome.why);
}

struct ReportFlags {
  std::string store, pattern, since;
  JudgeFlags judge;
  Files files;
};

ExitCode run_history_report(const ReportFlags& flags) {
  const history::Options options = flags.judge.options("history report");
  history::View view{flags.pattern, {}};
  if (!flags.since.empty()) view.since = history::parse_date(flags.since, "history report: --since");
  store::Store store = store::Store::open_existing(store_path(flags.store));
  history::History history = history::read_history(store, options);
  history.found = history::seen(history, view);
  flags.files.write("history report", history::history_document(history, view), history::short_document(history),
                    history::history_json(history));
  const bool any = std::any_of(history.series.begin(), history.series.end(),
                               [&](const history::TrackedSeries& one) { return view.shows(one.name); });
  return with_reason(
      "history report", any ? ExitCode::ok : ExitCode::no_data,
      history.series.empty() ? "the history is empty" : fmt::format("no series matches {}", flags.pattern));
}

ExitCode run_reanalyse(const ReportFlags& flags) {
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
  app->add_flag("--new", flags->fresh, "Fail only for events that no earlier check reported");
  app->add_flag("--strict", flags->strict, "Exit with 3 if most series show no step below 100 %");
  app->add_option("--pr", flags->branch, "Compare the runs of BRANCH with the main ones, and store nothing");
  app->add_option("--max-age", flags->max_age, "Exit with 3 if the newest night is more than DAYS ago")
      ->check(CLI::Range(0, 10000));
  flags->files.add_to(*app, true);
  app->footer(
      "Exit codes: 1 something became slower, or a case that held broke, and nobody has acknowledged, muted or "
      "expected\n"
      "it; 3 under 80 % of last week's series arrived, no series has 15 nights, the history is empty or lost, or\n"
      "(--strict) most series show no step below 100 %.");
  return {app, [flags] { return run_check(*flags); }};
}

Command history_report_command(CLI::App& history) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* app = history.add_subcommand("report", "Shows events and series, and judges nothing");
  add_store_option(*app, flags->store);
  app->add_option("--series", flags->pattern, "Only series whose names contain PATTERN, or match it (* and ?)");
  app->add_option("--since", flags->since, "Only from this day on: 2026-01-31");
  flags->judge.add_to(*app);
  flags->files.add_to(*app, false);
  return {app, [flags] { return run_history_report(*flags); }};
}

Command history_reanalyse_command(CLI::App& history) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* app = history.add_subcommand("reanalyse", "Analyses all nights again; decisions and ids stay");
  add_store_option(*app, flags->store);
  flags->judge.add_to(*app);
  return {app, [flags] { return run_reanalyse(*flags); }};
}

}  // namespace assay::cli
