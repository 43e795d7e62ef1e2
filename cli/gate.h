// The parts of `assay gate` behind its flags: running the tests within the budget, and the forms of the answer.
#pragma once

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/fitness/floors/check.h"
#include "harness/fitness/gate/allotment.h"
#include "harness/fitness/gate/decision.h"
#include "harness/fitness/gate/past.h"

#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace assay::cli {

enum class ExitStyle { assay, npd, nagios };
constexpr auto words(ExitStyle) { return std::to_array<std::string_view>({"assay", "npd", "nagios"}); }

struct GateRequest {
  gate::Catalogue catalogue;
  double budget = 30;  // s
  Clock::time_point start;
  std::string gpus;  // of --gpus
  std::optional<fitness::Floors> floors;
  const gate::Code* inject = nullptr;  // into `catalogue`; null: nothing
};

struct GateAnswer {
  gate::Decision decision;
  std::vector<gate::TestOutcome> tests;
  std::vector<std::string> notes;  // what was left out, and why
  std::string past;                // what earlier gates of this host found
  double seconds = 0;
};

// Runs the tests and decides. When it returns no process that it started is left, except what the kernel does not let
// die, and no file but the host's memory of past verdicts. Throws UsageError for what only shows then (floors of
// another unit).
GateAnswer run_gate(const GateRequest& request);

struct FloorsOfTest {
  const fitness::Floors& floors;
  double withheld_cpus = 0;  // by a quota
  bool crowded = false;      // see gate::Repetition
};
// Adds to `outcome` a repetition of every figure in `runs` that a floor limits, and to `used` which floors these were.
// Returns why a floor could not judge a record that it is for; empty if all could.
std::string add_repetitions(const RunSet& runs, const FloorsOfTest& by, gate::TestOutcome& outcome,
                            std::set<std::string>& used);

// The exit code of a verdict in a style.
int exit_code(gate::Verdict verdict, ExitStyle style);
// What is printed on standard output.
std::string gate_text(const GateRequest& request, const GateAnswer& answer, ExitStyle style);
std::string gate_json(const GateRequest& request, const GateAnswer& answer);
std::string gate_list(const gate::Catalogue& catalogue, bool json);

}  // namespace assay::cli
