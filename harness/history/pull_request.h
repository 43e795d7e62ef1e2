// Two builds of a change under review, its base and its head, measured side by side here: first the cases that the
// history suspects.
#pragma once

#include "harness/ab/command_figures.h"
#include "harness/history/confirm.h"
#include "harness/history/history.h"
#include "harness/history/repository.h"

#include <filesystem>
#include <string>
#include <vector>

namespace assay::history {

inline constexpr const char* cases_placeholder = "{cases}";

// The names of the cases that the history has, as their tool has them: first those with an open event or a suspect, the
// largest first, then those that changed before, then the others, the least noisy first, which are decided soonest.
std::vector<std::string> by_suspicion(const History& history);

// A regular expression that is these names and no others: "^(a|b/1)$".
std::string expression_of(const std::vector<std::string>& cases);

// The command with that expression, as a word of a shell, at each {cases}: all cases if none is named.
std::string with_cases(std::string command, const std::vector<std::string>& cases);

struct PullRequest {
  std::string run;  // prints figures in a checkout; with {cases}, of the cases that match the expression put there
  std::string metric = {};
  double tolerance = 0.02, error = 0.05;
  double budget = 3600;  // seconds
  std::uint64_t seed = 0;
  std::size_t at_once = 8;  // cases of one comparison, where the command takes them
};

struct PullRequestResult {
  Commit base, head;
  std::vector<ab::Case> cases;            // in the order in which they were measured
  std::vector<std::string> one_sided;     // only one build has them
  std::vector<std::string> not_measured;  // that the budget cut
  std::set<std::string> remarks;
  double seconds = 0;
  double error = 0.05;

  std::size_t count(Direction verdict) const;
  // failed: a case is slower; no_data: nothing is, but cases are undecided or were not measured.
  ExitCode code() const;
};

// Measures both checkouts until every case has its verdict or the budget is used up. All cases share the error rate.
PullRequestResult compare_builds(const std::vector<std::string>& cases, const PullRequest& asked,
                                 const std::filesystem::path& base, const std::filesystem::path& head,
                                 const ab::ToolReader& tool, const Measure& measure);

}  // namespace assay::history
