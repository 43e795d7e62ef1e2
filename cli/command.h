// A subcommand declares its flags on the root, and the function that runs it.
#pragma once

#include "harness/core/error.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace assay::cli {

struct Command {
  // `function` returns an ExitCode, or what the convention of another program wants as the exit code.
  template <typename Function>
  Command(CLI::App* declared, Function function)
      : app(declared), run([function = std::move(function)] { return static_cast<int>(function()); }) {}

  CLI::App* app;
  // Runs after parsing. Throws UsageError and Error; main prints them and turns them into exit codes.
  std::function<int()> run;
};

using Verb = Command (*)(CLI::App& parent);
// A command of these verbs, of which one is required.
Command with_verbs(CLI::App& app, std::initializer_list<Verb> verbs);

// One function per subcommand, each in its own file.
Command ab_command(CLI::App& root);
Command list_command(CLI::App& root);
Command run_command(CLI::App& root);
Command watch_command(CLI::App& root);
Command worker_command(CLI::App& root);
Command each_host_command(CLI::App& root);
Command agent_command(CLI::App& root);
Command remote_shell_command(CLI::App& root);
Command env_command(CLI::App& root);
Command audit_command(CLI::App& root);

// The words of the command line, starting with the program's name.
const std::vector<std::string>& command_line();
Command report_command(CLI::App& root);
Command accept_command(CLI::App& root);
Command check_command(CLI::App& root);
Command floors_command(CLI::App& root);
Command gate_command(CLI::App& root);
Command gate_test_command(CLI::App& root);
Command bench_command(CLI::App& root);
Command compare_command(CLI::App& root);
Command crosscheck_command(CLI::App& root);
Command diagnose_command(CLI::App& root);
Command export_command(CLI::App& root);
Command import_command(CLI::App& root);
Command estimate_command(CLI::App& root);
Command size_command(CLI::App& root);
Command project_command(CLI::App& root);
Command reference_command(CLI::App& root);
Command history_command(CLI::App& root);

// Declares all of them.
std::vector<Command> add_verbs(CLI::App& root);

// Says that stdout only tells what is stored elsewhere: that nobody reads it does not change the exit code.
void results_are_stored();

// Parses the command line, runs the subcommand, prints an error as `assay: ...` on stderr. Returns the exit code.
int run_command_line(int argc, const char* const* argv);

}  // namespace assay::cli
