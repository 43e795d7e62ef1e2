// The flags of `history check` by which it measures suspects itself, the same night.
#pragma once

#include "cli/history/history.h"
#include "cli/options.h"
#include "harness/history/builds.h"
#include "harness/history/history.h"
#include "harness/process/run.h"

#include <CLI/CLI.hpp>

#include <string>

namespace assay::cli {

// Flags that say how a commit of this repository is built and run.
struct BuildFlags {
  std::string build, run, metric, folder, budget = "1h";

  void add_to(CLI::App& app);
  // Throws UsageError, which begins with `verb`, without both commands.
  void require(const char* verb) const;
  double seconds(const char* verb) const;
  // The repository of this folder; throws UsageError if there is none.
  static history::Repository repository(const char* verb);
  history::Builds builds(const history::Repository& repository, Children& children) const;
};

// The history with the suspects that were decided, and the commits that were found.
history::History decide_tonight(const char* verb, const BuildFlags& flags, store::Store& store,
                                history::History history);

// `history check --pr BASE`: compares HEAD with where it left `base`. Without a store, no case is measured before
// another.
ExitCode check_pull_request(const std::string& base, const BuildFlags& flags, const JudgeFlags& judge,
                            const std::string& store, const Outputs& outputs);

// `history check --branch BRANCH`: compares its runs with the main ones, and stores nothing.
ExitCode check_branch(const std::string& branch, bool strict, store::Store& store, const history::History& main,
                      const Outputs& outputs);

}  // namespace assay::cli
