// Help texts, and messages about words of the command line that no flag or subcommand takes.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace assay::cli {

std::vector<std::string> subcommand_names(const CLI::App& app);

// "history add"; empty for the root.
std::string verb_of(const CLI::App& app);
// "history add: ", for messages.
std::string place_of(const CLI::App& app);

// Prints --json as "--json[=FILE]".
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
};

// What is wrong, with the nearest flag or subcommand.
std::string explain(const CLI::App& root, const CLI::ParseError& error);

}  // namespace assay::cli
