// What `history record` and `history backfill` share: where a command was run, and its figures in the store.
#pragma once

#include "cli/history/history.h"
#include "harness/history/store/store.h"
#include "reports/exchange/counting.h"
#include "reports/history/record.h"

#include <functional>
#include <string>
#include <vector>

namespace assay::cli {

// Flags that say on which machine, of which branch and with which further facts figures were measured.
struct PlaceFlags {
  std::string machine_by = "auto", branch;
  std::vector<std::string> labels;

  void add_to(CLI::App& app);
  // For the store. A pool's and a container's machines are told by class unless a flag says otherwise.
  store::AddOptions options(const history::Place& place) const;
  // This machine and the checkout in this folder. Says on stderr what is not known, and what follows from it.
  history::Place here(const char* verb, const std::string& command) const;
};

// Adds the runs and prints a line about each: "added 12 figures of 4 cases, commit 1234abcd, machine node1".
void add_and_tell(store::Store& store, const std::vector<RunData>& runs, const store::AddOptions& options);

// The words of --counts, each once. Throws UsageError if two of them count the same.
std::vector<report::CountedBy> counts_of(const char* verb, const std::vector<std::string>& words);

// A command's figures, as report::run_tool() finds them; errors begin with the verb. Says what could not be read.
// Throws Error if it was interrupted or ran out of time.
report::ToolOutput measure(const char* verb, const report::ToolCommand& command,
                           const std::function<FinishedProcess(const ProcessRun&)>& run);
// The same, with what is counted of the whole command as figures of the case `name`; of a command with {cases}, of each
// case, in a run of its own. Says why if something is not counted; `counted` is false then.
report::ToolOutput measure_and_count(const char* verb, const report::ToolCommand& command, Children& children,
                                     const std::vector<report::CountedBy>& counts, const std::string& name,
                                     bool& counted);

}  // namespace assay::cli
