// The formats that export and import offer: named things with a summary.
#pragma once

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
  return *std::find_if(formats.begin(), formats.end(), [&](const Format& one) { return one.name == name; });
}

}  // namespace assay::cli
