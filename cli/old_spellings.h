// Spellings of earlier versions: they still work, with one line on stderr.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace assay::cli {

// The words of a command line, without the program's name, with every old spelling replaced by the one of today. Says
// on stderr, in one line, what was replaced and which version removes it. `root` has all subcommands.
std::vector<std::string> in_new_spelling(const CLI::App& root, std::vector<std::string> words);

}  // namespace assay::cli
