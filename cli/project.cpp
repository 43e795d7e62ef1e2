// assay project: times, efficiency and cost at world sizes that were not measured, from runs at others.
#include "cli/command.h"
#include "cli/options.h"
#include "harness/json/json.h"
#include "harness/run/flags.h"
#include "reports/cost/cost.h"
#include "reports/scaling/priced.h"

#include <fmt/format.h>

#include <memory>

namespace assay::cli {

namespace {

struct ProjectOptions {
  Runs runs;
  std::string ranks;
  Prices prices;
  Outputs outputs;
};

ExitCode run_project(const ProjectOptions& options) {
  const std::vector<int> ranks = parse_ranks(options.ranks);
  const RunSet runs = options.runs.read();
  const report::PriceSource prices = report::load_prices(options.prices);
  say_unused_prices("project", runs, prices);
  const auto found = report::scaling::projections_of(runs, ranks, prices);
  if (found.all.empty())
    throw Error(fmt::format("project: needs a training case at {} world sizes that count; the most here is {}: "
                            "assay run NAME --set NAME.scaling=weak --ranks 1,2,4",
                            report::scaling::min_projected_worlds, found.max_worlds),
                ExitCode::no_data);
  options.outputs.write_json([&] { return dump_document(to_json(found), 2); });
  options.outputs.print(to_text(found));
  return ExitCode::ok;
}

}  // namespace

Command project_command(CLI::App& root) {
  auto options = std::make_shared<ProjectOptions>();
  CLI::App* app =
      root.add_subcommand("project", "Project times, efficiency and cost to world sizes that were not measured");
  options->runs.add_dirs_to(*app)->description("Run directories with a training case at three world sizes or more");
  app->add_option("--ranks", options->ranks, "World sizes to project to")->required()->type_name("8,64,512");
  options->prices.add_to(*app);
  options->outputs.add_to(*app);
  app->footer("Exit codes: 3 too few world sizes were measured.");
  return {app, [options] { return run_project(*options); }};
}

}  // namespace assay::cli
