// assay project: times, efficiency and cost at world sizes that were not measured, from runs at others.
#include "cli/command.h"
#include "cli/files.h"
#include "harness/json/json.h"
#include "harness/run/flags.h"
#include "reports/cost/cost.h"
#include "reports/scaling/priced.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

namespace assay::cli {

namespace {

struct ProjectOptions {
  std::vector<std::string> dirs;
  std::string ranks;
  report::PriceFlags prices;
  bool json = false;
};

ExitCode run_project(const ProjectOptions& options) {
  const std::vector<int> ranks = parse_ranks(options.ranks);
  const RunSet runs(read_runs(options.dirs), Injected::exclude);
  const report::PriceSource prices = report::load_prices(options.prices);
  say_unused_prices("project", runs, prices);
  const auto found = report::scaling::projections_of(runs, ranks, prices);
  if (found.all.empty())
    throw Error(fmt::format("project: needs a training case at {} world sizes that count; the most here is {}: "
                            "assay run NAME --set NAME.scaling=weak --ranks 1,2,4",
                            report::scaling::min_projected_worlds, found.max_worlds),
                ExitCode::no_data);
  fmt::print("{}", options.json ? dump_document(to_json(found), 2) : to_text(found));
  return ExitCode::ok;
}

}  // namespace

Command project_command(CLI::App& root) {
  auto options = std::make_shared<ProjectOptions>();
  CLI::App* app = root.add_subcommand("project", "Times, efficiency and cost at world sizes that were not measured");
  app->add_option("dirs", options->dirs, "Run directories with a training case at three world sizes or more")
      ->required()
      ->type_name("RUN");
  app->add_option("--ranks", options->ranks, "World sizes to project to")->required()->type_name("8,64,512");
  app->add_option("--prices", options->prices.file, "Prices of machines: JSON or a SkyPilot catalogue (CSV)")
      ->type_name("FILE");
  app->add_option("--price", options->prices.price, "Price of each whole machine in USD per hour");
  app->add_flag("--json", options->json, "As JSON");
  app->footer("Exit codes: 3 too few world sizes were measured.");
  return {app, [options] { return run_project(*options); }};
}

}  // namespace assay::cli
