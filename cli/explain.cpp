#include "cli/explain.h"

#include "harness/core/nearest.h"
#include "harness/core/text.h"

#include <fmt/format.h>

namespace assay::cli {

namespace {

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options(nullptr))
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// Names the first word that is no flag or argument, with the subcommand's nearest flag.
std::string explain_extras(const CLI::App& app, const std::string& fallback) {
  const std::vector<std::string> extras = app.remaining(false);
  if (extras.empty()) return first_line(fallback);
  const std::string word = extras.front().substr(0, extras.front().find('='));
  const std::string place = place_of(app);
  if (word.starts_with("-")) return fmt::format("{}unknown flag {}{}", place, word, suggestion(word, flag_names(app)));
  const CLI::Option* const json = app.get_option_no_throw("--json");
  return fmt::format("{}\"{}\" is not expected here{}", place, word,
                     json && json->count() > 0 ? "; --json=FILE writes a file" : "");
}

const CLI::App& innermost(const CLI::App& root) {
  const auto called = root.get_subcommands();
  return called.empty() ? root : innermost(*called.front());
}

}  // namespace

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) names.push_back(sub->get_name());
  return names;
}

std::string verb_of(const CLI::App& app) {
  std::string verb;
  for (const CLI::App* one = &app; one->get_parent(); one = one->get_parent())
    verb = one->get_name() + (verb.empty() ? "" : " ") + verb;
  return verb;
}

std::string place_of(const CLI::App& app) {
  const std::string verb = verb_of(app);
  return verb.empty() ? verb : verb + ": ";
}

std::string HelpFormatter::make_option_name(const CLI::Option* option, bool is_positional) const {
  if (!is_positional && option->check_lname("json")) return "--json[=FILE]";
  return CLI::Formatter::make_option_name(option, is_positional);
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

}  // namespace assay::cli
