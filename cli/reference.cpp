// assay reference: runs that machines of the same kind are held against.
#include "cli/command.h"
#include "reports/answers/add_reference.h"

#include <fmt/format.h>

#include <memory>

namespace assay::cli {

Command reference_command(CLI::App& root) {
  struct Options {
    std::string dir, name;
  };
  auto options = std::make_shared<Options>();
  CLI::App* app = root.add_subcommand("reference", "Keep a run that later ones of such machines are held against");
  app->require_subcommand(1);
  CLI::App* add = app->add_subcommand("add", "Keep a finished, undisturbed run as a reference, without names of hosts");
  add->add_option("run", options->dir, "Run directory")->required()->type_name("DIR");
  add->add_option("--name", options->name, "Name of the reference: lower-case letters, digits and '-'")
      ->required()
      ->type_name("NAME");
  return {app, [options] {
            const auto target = report::add_reference(options->dir, options->name);
            results_are_stored();
            fmt::print("kept as {}\n", target.string());
            return ExitCode::ok;
          }};
}

}  // namespace assay::cli
