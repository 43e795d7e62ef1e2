// How many instructions a user's command takes: a figure that hardly varies.
#pragma once

#include "reports/exchange/tool_output.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace assay::report {

struct InstructionCount {
  std::optional<double> count = {};
  std::string why = {};  // why there is none
};

inline constexpr const char* counter_shared = "the counter was shared, and saw only a part";

// Runs the command again, under valgrind, with Python's seed of hashes fixed. Its figures are not looked at.
InstructionCount count_by_valgrind(const ToolCommand& command,
                                   const std::function<FinishedProcess(const ProcessRun&)>& run);

// Counts the instructions of each case of the output that is ok, in a run of its own: alone() is the command that runs
// only that case. `how`: "perf" or "valgrind". Adds them as figures of the cases. What was not counted, and why; a
// command that runs other cases too counts for none.
std::vector<std::string> count_cases(ToolOutput& output, const std::string& how,
                                     const std::function<ToolCommand(const std::string& name)>& alone,
                                     const std::function<FinishedProcess(const ProcessRun&)>& run);

// What cachegrind's logs say, a process each: the sum; or what it could not run.
InstructionCount instructions_in_logs(const std::vector<std::string>& logs);

// The count as a figure of the case `name` beside those of the output's last run.
void add_instructions(ToolOutput& output, const std::string& name, double count);

}  // namespace assay::report
