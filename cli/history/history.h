// The verbs of `assay history`, a file each (or a few that belong together), and what they share.
#pragma once

#include "cli/command.h"
#include "harness/core/error.h"
#include "harness/history/settings.h"

#include <filesystem>
#include <string>

namespace assay::cli {

// Declares --store of a verb. An empty text afterwards means that it was not given.
void add_store_option(CLI::App& verb, std::string& store);
// The file that --store names, else $ASSAY_HISTORY. Throws UsageError if neither does.
std::filesystem::path store_path(const std::string& store);
// A moment that a flag names, as text in files: a date stands for its first second. Throws UsageError, which begins
// with `flag`, for any other text.
std::string moment_of(const std::string& flag, const std::string& text);

// --tolerance, --false-alarms, --split-by and --order of the verbs that analyse.
struct JudgeFlags {
  std::string tolerance = "2%", false_alarms = "1%";
  history::JudgeSettings settings;

  void add_to(CLI::App& app);
  // Throws UsageError, which begins with `verb`, for values out of range.
  history::Options options(const char* verb) const;
  // The same with the settings, which the store may keep.
  history::Options options(const char* verb, const store::Store& store, history::OtherSettings other) const;
};

// The code; says why on stderr if it is no_data.
ExitCode with_reason(const char* verb, ExitCode code, const std::string& why);

Command history_add_command(CLI::App& history);
Command history_check_command(CLI::App& history);
Command history_record_command(CLI::App& history);
Command history_backfill_command(CLI::App& history);
Command history_report_command(CLI::App& history);
Command history_ack_command(CLI::App& history);
Command history_mute_command(CLI::App& history);
Command history_unmute_command(CLI::App& history);
Command history_expect_command(CLI::App& history);
Command history_bisect_command(CLI::App& history);
Command history_confirm_command(CLI::App& history);
Command history_export_command(CLI::App& history);
Command history_store_command(CLI::App& history);

}  // namespace assay::cli
