// assay history: what became slower over months of runs, in one file.
#include "cli/history/history.h"

#include "harness/core/error.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/core/utc.h"

#include <cstdlib>

namespace assay::cli {

void add_store_option(CLI::App& verb, std::string& store) {
  verb.add_option("--store", store, "The history: one SQLite file (default: $ASSAY_HISTORY)")->type_name("FILE");
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
  app.add_option("--false-alarms", false_alarms, "Highest share of unchanged nights that may alarm")
      ->capture_default_str();
  app.add_option("--split-by", settings.split_by,
                 "Judge the nights of each value of this fact apart; `check` keeps it in the history (none: do not)")
      ->type_name("FACT");
  app.add_option("--order", settings.order,
                 "commit: a night is a commit, in the order of first parents here; kept as --split-by (default: night)")
      ->check(CLI::IsMember({"night", "commit"}));
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

history::Options JudgeFlags::options(const char* verb, const store::Store& store, history::OtherSettings other) const {
  return history::with_settings(verb, store, options(verb), settings, other);
}

ExitCode with_reason(const char* verb, ExitCode code, const std::string& why) {
  if (code == ExitCode::no_data) say("assay: {}: {}\n", verb, why);
  return code;
}

Command history_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand("history", "Keep the figures of many runs, and find what became slower");
  return with_verbs(*app, {history_add_command, history_record_command, history_backfill_command, history_check_command,
                           history_report_command, history_ack_command, history_mute_command, history_unmute_command,
                           history_expect_command, history_bisect_command, history_confirm_command,
                           history_export_command, history_store_command});
}

}  // namespace assay::cli
