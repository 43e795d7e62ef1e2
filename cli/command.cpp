// The root of the command line: subcommands, errors with the nearest valid word, exit codes.
#include "cli/command.h"

#include "harness/core/nearest.h"
#include "harness/core/streams.h"
#include "harness/core/units.h"
#include "harness/core/version.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace assay::cli {

namespace {

std::vector<std::string> words;
bool stored = false;

// A subcommand has one line here and a file of its own.
constexpr Command (*commands[])(CLI::App&) = {
    list_command,         run_command,        worker_command,   agent_command,     each_host_command,
    remote_shell_command, env_command,        report_command,   check_command,     compare_command,
    bench_command,        crosscheck_command, diagnose_command, export_command,    import_command,
    reference_command,    history_command,    ab_command,       estimate_command,  size_command,
    project_command,      floors_command,     gate_command,     gate_test_command, accept_command};

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options(nullptr))
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// "history add: ", for messages.
std::string place_of(const CLI::App& app) {
  std::string place;
  for (const CLI::App* one = &app; one->get_parent(); one = one->get_parent())
    place = one->get_name() + (place.empty() ? "" : " ") + place;
  return place.empty() ? place : place + ": ";
}

// Names the first word that is no flag or argument, with the subcommand's nearest flag.
std::string explain_extras(const CLI::App& app, const std::string& fallback) {
  const std::vector<std::string> extras = app.remaining(false);
  if (extras.empty()) return first_line(fallback);
  const std::string word = extras.front().substr(0, extras.front().find('='));
  const std::string place = place_of(app);
  if (word.starts_with("-")) return fmt::format("{}unknown flag {}{}", place, word, suggestion(word, flag_names(app)));
  return fmt::format("{}\"{}\" is not expected here", place, word);
}

const CLI::App& innermost(const CLI::App& root) {
  const auto called = root.get_subcommands();
  return called.empty() ? root : innermost(*called.front());
}

std::string explain(const CLI::App& root, const CLI::ParseError& error) {
  const CLI::App& app = innermost(root);
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) {
    if (!root.remaining(false).empty() || &app == &root) return explain_extras(root, error.what());
    return explain_extras(app, error.what());
  }
  if (const auto names = subcommand_names(app); &app != &root && !names.empty())
    return fmt::format("{}no subcommand{}", place_of(app), suggestion("", names));
  return place_of(app) + first_line(error.what());
}

// Every line of a message carries the program's name, so that it can be distinguished from other output.
void print_error(const std::string& message) {
  std::size_t start = 0;
  while (start <= message.size()) {
    const std::size_t end = std::min(message.find('\n', start), message.size());
    if (end > start || start == 0) say("assay: {}\n", message.substr(start, end - start));
    start = end + 1;
  }
}

// The exit code when stdout could not be written: a redirection may have filled its disk. Who closed a pipe has read
// enough, and needs no word about it.
int without_output(int code, int error) {
  if (stored && (error == EPIPE || error == EBADF)) return code;
  if (error != EPIPE) print_error(fmt::format("cannot write to standard output: {}", std::strerror(error)));
  return static_cast<int>(worst(static_cast<ExitCode>(code), ExitCode::broken));
}

int parse_and_run(int argc, const char* const* argv) {
  CLI::App root("Is this machine as fast as it should be for training neural networks?", "assay");
  root.set_version_flag("--version", fmt::format("assay {}", build_info().version));
  root.require_subcommand(0, 1);
  std::vector<Command> table;
  for (const auto make : commands) table.push_back(make(root));

  // CLI11 would call a mistyped subcommand an unexpected argument.
  const CLI::App* app = &root;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    const auto names = subcommand_names(*app);
    if (names.empty()) break;
    if (std::find(names.begin(), names.end(), argv[i]) == names.end())
      throw UsageError(
          fmt::format("{}unknown subcommand \"{}\"{}", place_of(*app), argv[i], suggestion(argv[i], names)));
    app = app->get_subcommand(argv[i]);
  }
  try {
    root.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return root.exit(asked);
  } catch (const CLI::ParseError& error) {
    throw UsageError(explain(root, error));
  }
  for (const Command& command : table)
    if (command.app->parsed()) return static_cast<int>(command.run());
  throw UsageError(fmt::format("no subcommand{}; see assay --help", suggestion("", subcommand_names(root))));
}

}  // namespace

const std::vector<std::string>& command_line() { return words; }

void results_are_stored() { stored = true; }

double parse_part(const std::string& place, const std::string& text) {
  const double part = parse_flag(place, text, parse_fraction);
  if (part < 0 || part >= 1)
    throw UsageError(fmt::format(
        "{}: {} is not a fraction from 0 to less than 100 %{}", place, text,
        part >= 1 && part < 100 && !text.ends_with('%') ? fmt::format("; did you mean {}%?", text) : std::string()));
  return part;
}

int run_command_line(int argc, const char* const* argv) {
  prepare_streams();
  words.assign(argv, argv + argc);
  try {
    const int code = parse_and_run(argc, argv);
    const int error = flush_stdout();
    return error == 0 ? code : without_output(code, error);
  } catch (const Error& error) {
    print_error(error.what());
    return static_cast<int>(error.code());
  } catch (const std::system_error& error) {  // fmt::print() to stdout throws it, too
    if (std::ferror(stdout)) return without_output(static_cast<int>(ExitCode::ok), error.code().value());
    print_error(error.what());
  } catch (const std::exception& error) {
    print_error(error.what());
  }
  return static_cast<int>(ExitCode::broken);
}

}  // namespace assay::cli
