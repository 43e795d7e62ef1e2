// assay history backfill: measures commits of the past.
#include "cli/history/history.h"
#include "cli/history/measured.h"
#include "cli/history/tonight.h"
#include "harness/core/clock.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/history/builds.h"

#include <fmt/format.h>

#include <memory>
#include <set>

namespace assay::cli {

namespace {

constexpr const char* backfill_verb = "history backfill";

struct BackfillFlags {
  std::string store, commits, suite;
  BuildFlags builds;
  PlaceFlags place;
};

std::vector<history::Commit> commits_of(const history::Repository& repository, const std::string& range) {
  const std::size_t dots = range.find("..");
  if (dots == range.npos || dots == 0 || dots + 2 == range.size() || range[dots + 2] == '.')
    throw UsageError(fmt::format("{}: --commits {}: use OLD..NEW, of which NEW is measured and OLD is not",
                                 backfill_verb, in_quotes(range)));
  return repository.commits(range.substr(0, dots), range.substr(dots + 2));
}

ExitCode run_backfill(const BackfillFlags& flags) {
  flags.builds.require(backfill_verb);
  const double budget = flags.builds.seconds(backfill_verb);
  const history::Repository repository = BuildFlags::repository(backfill_verb);
  const std::vector<history::Commit> commits = commits_of(repository, flags.commits);
  store::Store store = store::Store::open(store_path(flags.store));
  results_are_stored();
  std::set<std::string> known, nights;
  for (const store::Run& run : store.read().runs) known.insert(run.commit);
  history::Place place = flags.place.here(backfill_verb, flags.builds.run);
  place.suite = flags.suite;
  place.checkout = {};
  store::AddOptions options = flags.place.options(place);
  Children children("the measurements");
  history::Builds builds = flags.builds.builds(repository, children);
  const Clock::time_point start = Clock::now();
  std::size_t measured = 0, there = 0, failed = 0;
  for (const std::size_t at : history::by_halves(commits.size())) {
    const history::Commit& commit = commits[at];
    nights.insert(commit.date.substr(0, 10));
    const double left = budget - seconds_since(start);
    if (known.contains(commit.hash)) {
      ++there;
      continue;
    }
    if (left <= 0) break;
    const auto folder = builds.of(commit.hash, left);
    if (!folder) {
      say("assay: {}: {}\n", backfill_verb, builds.problem());
      ++failed;
      continue;
    }
    report::ToolCommand command;
    command.shell = flags.builds.run, command.folder = *folder, command.limit_seconds = budget - seconds_since(start);
    if (!flags.builds.metric.empty()) command.metrics = {flags.builds.metric};
    report::ToolOutput output =
        measure(backfill_verb, command, [&](const ProcessRun& run) { return children.run(run); });
    if (output.stopped != Stopped::no) break;
    const std::string problem = output.problem;
    place.checkout.commit = commit.hash;
    options.at = commit.date;
    const std::vector<RunData> runs = history::recorded_runs(std::move(output), place, store.read(), options);
    add_and_tell(store, runs, options);
    if (!problem.empty()) say("assay: {}: {}: the command {}\n", backfill_verb, commit.hash.substr(0, 12), problem);
    problem.empty() ? ++measured : ++failed;
  }
  const std::size_t cut = commits.size() - measured - there - failed;
  show("{} measured, {} there already, {} failed, {} left for another time\n",
       plural(static_cast<std::int64_t>(measured), "commit"), there, failed, cut);
  if (nights.size() < measured + there)
    say("assay: {}: {} commits are of {} days: several commits of a day count as one night\n", backfill_verb,
        measured + there, nights.size());
  return cut + failed > 0 ? ExitCode::no_data : ExitCode::ok;
}

}  // namespace

Command history_backfill_command(CLI::App& history) {
  auto flags = std::make_shared<BackfillFlags>();
  CLI::App* app =
      history.add_subcommand("backfill", "Build and measure commits of the past, the newest first by halves");
  add_store_option(*app, flags->store);
  app->add_option("--commits", flags->commits, "OLD..NEW: the first parents of NEW down to OLD, which is left out")
      ->required();
  flags->builds.add_to(*app);
  app->add_option("--name", flags->suite, "As of `history record`");
  flags->place.add_to(*app);
  app->footer(
      "Each commit is added with its own date. Those that the store has are left out, so that the same command goes "
      "on.\n"
      "Exit codes: 2 the clone is shallow, or the command prints no figure that is known; 3 commits are left.");
  return {app, [flags] { return run_backfill(*flags); }};
}

}  // namespace assay::cli
