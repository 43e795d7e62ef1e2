// Runs a command of a user for its figures, in whatever known format it prints or writes them.
#pragma once

#include "harness/process/run.h"
#include "reports/exchange/recognise.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace assay::report {

struct ToolCommand {
  std::string shell;                      // of /bin/sh, run in `folder`
  std::filesystem::path folder = ".";     // absolute, or below this process's
  std::vector<std::string> files = {};    // that it writes its figures to, below `folder`
  std::vector<std::string> metrics = {};  // read only these, as read_named() does
  std::optional<Better> better = {};      // of those
  double limit_seconds = std::numeric_limits<double>::infinity();

  std::string line() const;  // for /bin/sh, wherever it runs
};

struct ToolOutput {
  std::vector<RecognisedFile> files;  // where figures were found: its output, and files that it wrote
  std::vector<std::string> names;     // of those
  std::string started;                // in UTC
  std::int64_t moment = 0;            // the same in ns since 1970; 0: it is not known so finely
  std::string problem;                // "ended with code 3"; empty if it succeeded
  Stopped stopped = Stopped::no;
};

// Runs the command; its stderr is shown as it comes. Figures are looked for in what it prints, and if that has none, in
// the files that it was told to write: those given, those that its words name, and pytest-benchmark's and asv's own
// folders. A file that it left as it was does not count. Without figures, a command that succeeded is a UsageError that
// says what is wrong; one that failed is told by `problem`.
ToolOutput run_tool(const ToolCommand& command, const std::function<FinishedProcess(const ProcessRun&)>& run);

// A command as a shell reads it: one word with blanks is a command line already.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace assay::report
