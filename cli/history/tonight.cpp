#include "cli/history/tonight.h"

#include "cli/options.h"
#include "harness/ab/where.h"
#include "harness/core/host.h"
#include "harness/core/units.h"
#include "harness/history/store/facts.h"
#include "harness/history/tonight.h"
#include "harness/machine/environment.h"
#include "harness/machine/root.h"

#include <nlohmann/json.hpp>

#include <random>

namespace assay::cli {

void BuildFlags::add_to(CLI::App& app) {
  app.add_option("--build", build, "Command that builds a checkout, in it")->check(not_empty);
  app.add_option("--run", run, "Command that prints the figures of a build, in its checkout")->check(not_empty);
  app.add_option("--metric", metric, "What in its output is the figure, as of `history confirm`");
  app.add_option("--budget", budget, "Time for building and measuring (90s, 10m, 1h)")->capture_default_str();
  app.add_option("--builds", folder, "Folder of the builds that are kept by commit (default: in .git)")
      ->type_name("DIR");
}

void BuildFlags::require(const char* verb) const {
  if (build.empty() || run.empty())
    throw UsageError(
        fmt::format("{}: give --build and --run: how a commit is built, and what prints its figures "
                    "(--build true if nothing is built)",
                    verb));
}

double BuildFlags::seconds(const char* verb) const {
  return parse_flag(fmt::format("{}: --budget", verb), budget, parse_seconds);
}

history::Repository BuildFlags::repository(const char* verb) {
  std::string why;
  if (auto found = history::Repository::of(".", &why)) return *found;
  throw UsageError(fmt::format("{}: run it in the repository that is measured: {}", verb, why));
}

history::Builds BuildFlags::builds(const history::Repository& repository, Children& children) const {
  return {repository, folder.empty() ? repository.own_folder() / "assay-builds" : std::filesystem::path(folder), build,
          [&children](const ProcessRun& one) { return children.run(one); }};
}

history::History decide_tonight(const char* verb, const BuildFlags& flags, store::Store& store,
                                history::History history) {
  flags.require(verb);
  history::NightRequest request{flags.run, flags.metric, flags.seconds(verb), std::random_device()(), {this_host()}};
  const Json environment = environment_json(probe_machine(user_root()));
  RunData here;
  here.run = {{"environment", environment}};
  request.machines.insert(store::machine_name(here, store::environment_facts(environment), true));
  const history::Repository repository = BuildFlags::repository(verb);
  Children children("the measurements");
  request.where = [&](const std::string& a, const std::string& b, double seconds) {
    return ab::text_of(ab::where_time_goes(
        a, b, [&](const ProcessRun& one) { return children.run(one); }, seconds));
  };
  history::Builds builds = flags.builds(repository, children);
  const auto build = [&](const std::string& commit, double seconds, std::string& why) {
    auto folder = builds.of(commit, seconds);
    if (!folder) why = builds.problem();
    return folder;
  };
  const auto measure = [&](const ab::Commands& commands, const ab::Options& options) {
    return ab::run_commands(commands, options, [&](const ProcessRun& one) { return children.run(one); });
  };
  return history::with_decisions(store, history, history::decide_night(history, repository, request, build, measure));
}

}  // namespace assay::cli
