// Shared by subcommands that read runs: reading the runs, writing the requested files, the terminal.
#pragma once

#include "harness/fitness/floors/check.h"
#include "harness/record/run_dir.h"
#include "reports/cost/match.h"
#include "reports/render/render.h"

#include <filesystem>
#include <string>
#include <vector>

namespace assay::cli {

// Each directory once, so that a path given twice does not count twice, by a path whose last part can name it.
std::vector<std::filesystem::path> run_dirs(const std::vector<std::string>& dirs);
// The runs in run_dirs(). Throws UsageError as read_run does.
std::vector<RunData> read_runs(const std::vector<std::string>& dirs);

// The `count` newest run directories in runs/, the oldest of them first, for the flag --last of a subcommand. Throws
// UsageError if there are fewer.
std::vector<std::string> last_runs(const char* subcommand, std::size_t count);

// A file that the user named, as by replace_file(); "-" and /dev/stdout are stdout. Throws UsageError, which names the
// subcommand, if there can be no such file, and Error if it cannot be written whole, as on a full disk.
void write_named_file(const char* subcommand, const std::string& path, const std::string& text);

// Says on stderr if the user's file of prices has none for these runs.
void say_unused_prices(const char* subcommand, const RunSet& runs, const report::PriceSource& prices);

// To stdout, unless one of the `files` is that. On a terminal in at most 100 columns, and in colour if NO_COLOR is not
// set (https://no-color.org); elsewhere lines are not wrapped or cut.
void print(const report::Document& document, const std::vector<std::string>& files = {});
// The same of a text, as it is.
void print(const std::string& text, const std::vector<std::string>& files);

}  // namespace assay::cli
