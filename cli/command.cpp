// The root of the command line: subcommands, errors with the nearest valid word, exit codes.
#include "cli/command.h"

#include "cli/explain.h"
#include "cli/old_spellings.h"
#include "harness/core/nearest.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/core/version.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace assay::cli {

namespace {

std::vector<std::string> words;
bool stored = false;

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

int parse_and_run() {
  CLI::App root("Is this machine as fast as it should be for training neural networks?", "assay");
  root.set_version_flag("--version", fmt::format("assay {}", build_info().version));
  root.require_subcommand(0, 1);
  root.formatter(std::make_shared<HelpFormatter>());
  const std::vector<Command> table = add_verbs(root);
  std::vector<std::string> given = in_new_spelling(root, {words.begin() + (words.empty() ? 0 : 1), words.end()});

  // CLI11 would call a mistyped subcommand an unexpected argument.
  const CLI::App* app = &root;
  for (const std::string& word : given) {
    const auto names = subcommand_names(*app);
    if (names.empty() || word.starts_with("-")) break;
    if (std::ranges::find(names, word) == names.end())
      throw UsageError(
          fmt::format("{}unknown subcommand {}{}", place_of(*app), in_quotes(word), suggestion(word, names)));
    app = app->get_subcommand(word);
  }
  try {
    std::ranges::reverse(given);  // as CLI11 takes words
    root.parse(std::move(given));
  } catch (const CLI::Success& asked) {  // --help, --version
    return root.exit(asked);
  } catch (const CLI::ParseError& error) {
    throw UsageError(explain(root, error));
  }
  for (const Command& command : table)
    if (command.app->parsed()) return command.run();
  throw UsageError(fmt::format("no subcommand{}; see assay --help", suggestion("", subcommand_names(root))));
}

}  // namespace

const std::vector<std::string>& command_line() { return words; }

void results_are_stored() { stored = true; }

int run_command_line(int argc, const char* const* argv) {
  prepare_streams();
  words.assign(argv, argv + argc);
  try {
    const int code = parse_and_run();
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
