// Messages about words of the command line that no flag or subcommand takes.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace assay::cli {

std::vector<std::string> subcommand_names(const CLI::App& app);

// "history add: ", for messages.
std::string place_of(const CLI::App& app);

// What is wrong, with the nearest flag or subcommand.
std::string explain(const CLI::App& root, const CLI::ParseError& error);

}  // namespace assay::cli
