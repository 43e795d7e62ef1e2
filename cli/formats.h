// Flags for figures of other programs: the formats that export and import offer, and --better.
#pragma once

#include "harness/record/metric.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::cli {

// Adds the argument `format`, one of these names, and lists them below the subcommand's help.
template <typename Format>
void add_format(CLI::App& app, std::string& chosen, std::span<const Format> formats) {
  std::vector<std::string> names;
  std::string listed;
  for (const Format& format : formats) {
    names.emplace_back(format.name);
    listed += fmt::format("  {:<16} {}\n", format.name, format.summary);
  }
  app.add_option("format", chosen, "See below")->required()->check(CLI::IsMember(names));
  app.footer("Formats:\n" + listed);
}

// The one of this name, which add_format() has checked.
template <typename Format>
const Format& format_named(std::span<const Format> formats, std::string_view name) {
  return *std::ranges::find(formats, name, &Format::name);
}

// --better of the verbs that have --metric.
inline void add_better_option(CLI::App& app, std::string& better) {
  app.add_option("--better", better, "Which way the figure counts if the output does not say: higher or lower")
      ->check(CLI::IsMember(all_words<Better>()));
}

}  // namespace assay::cli
