// assay check: judges finished runs against the limits of a floors file.
#include "cli/catalogue.h"
#include "cli/command.h"
#include "cli/files.h"
#include "harness/json/json.h"
#include "reports/acceptance/acceptance.h"
#include "reports/render/render.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

namespace assay::cli {

namespace {

struct CheckOptions {
  std::vector<std::string> dirs;
  std::string floors;
  std::string json;
  std::string junit;
  bool injected = false;
};

ExitCode run_check(const CheckOptions& options) {
  const report::Floors floors = read_floors(options.floors);
  const report::RunSet runs(read_runs(options.dirs),
                            options.injected ? report::Injected::include : report::Injected::keep);
  const report::CheckResult result = report::check(runs, floors, family_names());

  if (!options.json.empty()) write_named_file("check", options.json, dump_document(report::check_json(result)));
  if (!options.junit.empty())
    write_named_file("check", options.junit, report::render_junit(report::check_suite(result)));
  print(report::check_document(result), {options.json, options.junit});
  if (runs.entries().empty())
    fmt::print(stderr, "assay: check: no finished case in {}\n", fmt::join(options.dirs, ", "));
  return result.code();
}

}  // namespace

Command check_command(CLI::App& root) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* app =
      root.add_subcommand("check", "Accept a machine: judge finished runs against the limits of a floors file");
  app->add_option("dirs", options->dirs, "Run directories")->required();
  app->add_option("--floors", options->floors, "A floors file, or the name of one in configs/floors")->required();
  app->add_option("--json", options->json, "Write all verdicts as JSON to FILE (- for stdout), in base units");
  app->add_option("--junit", options->junit, "Write one test case per floor as JUnit XML to FILE");
  app->add_flag("--injected", options->injected, "Treat records with injected faults as measurements");
  return {app, [options] { return run_check(*options); }};
}

}  // namespace assay::cli
