// What a user's command measured, as runs for the store.
#pragma once

#include "harness/history/repository.h"
#include "harness/history/store/store.h"
#include "harness/record/run_dir.h"
#include "reports/exchange/tool_output.h"

#include <map>
#include <string>
#include <vector>

namespace assay::history {

// Where a command ran, and on what sources. What its figures say of their commit and time counts for more.
struct Place {
  std::string host;
  Json environment;  // of `assay env`
  Checkout checkout;
  std::string suite;                              // of the cases that the command measures; may be empty
  std::map<std::string, std::string> facts = {};  // such as the versions of compilers and packages
};

// Facts that explain figures: the version of the compiler, and of the packages of the Python that a command line names.
std::map<std::string, std::string> tool_versions(const std::string& command);

// The runs that the output holds, without those of files with no figure. If the command failed there is at least one,
// and the cases that the last run of this machine and suite measured and these did not have failed.
std::vector<RunData> recorded_runs(report::ToolOutput output, const Place& place, const store::Contents& earlier,
                                   const store::AddOptions& options);

}  // namespace assay::history
