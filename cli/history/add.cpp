// assay history add: the figures of finished runs go into the store.
#include "harness/history/add.h"
#include "cli/history/history.h"
#include "harness/core/streams.h"
#include "harness/json/json.h"
#include "harness/json/masked.h"
#include "harness/runs/figures.h"

#include <memory>

namespace assay::cli {

namespace {

struct HistoryAddOptions {
  std::vector<std::string> runs;
  std::string store, at, env, branch;
  std::string machine_by = "host";
};

store::AddOptions options_of(const HistoryAddOptions& given) {
  store::AddOptions options;
  options.title = case_title;
  options.machine_by_class = given.machine_by == "class";
  options.branch = given.branch;
  if (!given.at.empty()) options.at = moment_of("history add: --at", given.at);
  if (!given.env.empty()) options.environment = store::environment_facts(masked(read_json(given.env)));
  return options;
}

ExitCode run_history_add(const HistoryAddOptions& given) {
  const std::filesystem::path file = store_path(given.store);
  const history::RunDirectories runs = history::run_directories(given.runs);
  const store::AddOptions options = options_of(given);
  store::Store store = store::Store::open(file);
  results_are_stored();
  return history::add_runs(store, runs, options,
                           {.result = [](const std::string& line) { show("{}\n", line); },
                            .remark = [](const std::string& line) { say("assay: history add: {}\n", line); }});
}

}  // namespace

Command history_add_command(CLI::App& history) {
  auto options = std::make_shared<HistoryAddOptions>();
  CLI::App* app = history.add_subcommand("add", "Add finished runs; one that is there already stays as it is");
  app->add_option("runs", options->runs, "Run directories, and folders of them (as `assay import` makes)")->required();
  add_store_option(*app, options->store);
  app->add_option("--at", options->at, "When they ran, instead of what they say: 2026-01-31 or 2026-01-31T12:00:00Z");
  app->add_option("--env", options->env, "Where they ran, instead of what they say: a file from `assay env --json`");
  app->add_option("--machine-by", options->machine_by,
                  "host: each host is a machine (default); class: so are all hosts of equal CPU and GPUs")
      ->check(CLI::IsMember({"host", "class"}));
  app->add_option(
      "--branch", options->branch,
      "Branch of the sources they measure; reports and checks look at main and master unless a branch is named");
  return {app, [options] { return run_history_add(*options); }};
}

}  // namespace assay::cli
