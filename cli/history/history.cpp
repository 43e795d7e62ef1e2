// assay history: what became slower over months of runs, in one file.
#include "cli/history/history.h"

#include "cli/files.h"
#include "harness/core/error.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/core/utc.h"
#include "harness/json/json.h"
#include "reports/render/render.h"

#include <cstdlib>
#include <memory>
#include <vector>

namespace assay::cli {

namespace {

using Verb = Command (*)(CLI::App& history);

// A verb has one line here.
constexpr Verb verbs[] = {
    history_add_command,        //
    history_check_command,      //
    history_report_command,     //
    history_ack_command,        //
    history_mute_command,       //
    history_unmute_command,     //
    history_expect_command,     //
    history_bisect_command,     //
    history_confirm_command,    //
    history_reanalyse_command,  //
    history_merge_command,      //
    history_alias_command,      //
    history_compact_command,    //
    history_export_command,     //
    history_salvage_command,    //
};

}  // namespace

void add_store_option(CLI::App& verb, std::string& store) {
  verb.add_option("--store", store, "The history: one SQLite file (default: $ASSAY_HISTORY)");
}

std::filesystem::path store_path(const std::string& store) {
  if (!store.empty()) return store;
  if (const char* named = std::getenv("ASSAY_HISTORY"); named && *named) return named;
  throw UsageError("history: no store: name its file with --store, or in the environment variable ASSAY_HISTORY");
}

std::string moment_of(const std::string& flag, const std::string& text) {
  for (const std::string& moment : {text, text + "T00:00:00Z"})
    if (parse_utc(moment)) return moment;
  throw UsageError(fmt::format("{} {}: give a date such as 2026-01-31, or a time such as 2026-01-31T12:00:00Z", flag,
                               in_quotes(text)));
}

void JudgeFlags::add_to(CLI::App& app) {
  app.add_option("--tolerance", tolerance, "Changes below this never alarm")->capture_default_str();
  app.add_option("--false-alarms", false_alarms, "The most nights without a change on which anything may alarm")
      ->capture_default_str();
}

history::Options JudgeFlags::options(const char* verb) const {
  const auto share = [&](const char* flag, const std::string& text, double lowest) {
    const std::string place = fmt::format("{}: {}", verb, flag);
    const double value = parse_flag(place, text, parse_fraction);
    if (value < lowest || value >= 0.5)
      throw UsageError(fmt::format("{}: {} is not from {} to less than 50 %", place, text, format_percent(lowest)));
    return value;
  };
  history::Options options;
  options.tolerance = share("--tolerance", tolerance, 0);
  options.false_alarms = share("--false-alarms", false_alarms, 1e-4);
  return options;
}

void HistoryOutputs::add_to(CLI::App& app) {
  app.add_option("--html", html, "Write one HTML page to FILE");
  app.add_option("--md", markdown, "Write at most 20 lines of Markdown to FILE (- for stdout)");
  app.add_option("--json", json, "Write everything as JSON to FILE (- for stdout)");
  if (with_junit) app.add_option("--junit", junit, "Write JUnit XML to FILE: a test per machine and family");
}

void HistoryOutputs::write(const char* verb, const report::Document& page, const report::Document& brief,
                           const Json& data, const std::function<report::TestSuite()>& suite) const {
  if (suite && !junit.empty()) write_named_file(verb, junit, report::render_junit(suite()));
  if (!html.empty()) write_named_file(verb, html, report::render_html(page));
  if (!markdown.empty()) write_named_file(verb, markdown, report::render_markdown(brief));
  if (!json.empty()) write_named_file(verb, json, dump_document(data));
  print(page, {html, markdown, json, junit});
}

ExitCode with_reason(const char* verb, ExitCode code, const std::string& why) {
  if (code == ExitCode::no_data) say("assay: {}: {}\n", verb, why);
  return code;
}

Command history_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand("history", "Keeps the figures of many runs, and finds what became slower");
  app->require_subcommand(1);
  auto table = std::make_shared<std::vector<Command>>();
  for (const Verb make : verbs) table->push_back(make(*app));
  return {app, [table] {
            for (const Command& verb : *table)
              if (verb.app->parsed()) return verb.run();
            return static_cast<int>(ExitCode::usage);  // not reached: a verb is required
          }};
}

}  // namespace assay::cli
