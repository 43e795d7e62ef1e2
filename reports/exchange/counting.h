// Counts what a user's command does, such as executing an instruction: figures that hardly vary.
#pragma once

#include "harness/process/child_counter.h"
#include "reports/exchange/tool_output.h"

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

// perf: instructions in user space, as the command runs. The others run it again, under valgrind. valgrind:
// instructions, by cachegrind. heap: allocations, allocated bytes and the most bytes in use, by DHAT.
enum class CountedBy { perf, valgrind, heap };
constexpr auto words(CountedBy) { return std::to_array<std::string_view>({"perf", "valgrind", "heap"}); }
const char* counted_things(CountedBy by);  // "instructions"

struct Count {
  const char* metric;
  const char* unit;
  double value;
};
struct Counts {
  std::vector<Count> counts = {};
  std::string why = {};  // why there are none
};

Counts instructions_of(const ChildCounter& counter);

// Runs a process with as little chance in it as can be: one seed for Python's hashes, and no random addresses where the
// kernel lets us ask for that (containers may refuse it).
FinishedProcess run_without_chance(ProcessRun process, const std::function<FinishedProcess(const ProcessRun&)>& run);

// Runs the command again, without chance. Its figures are not looked at. Not for `perf`.
Counts count_under_valgrind(const ToolCommand& command, CountedBy by,
                            const std::function<FinishedProcess(const ProcessRun&)>& run);

// Counts each case of the output that is ok in a run of its own: alone() is the command that runs only that case. Adds
// the counts as figures of the cases. What was not counted, and why; a command that runs other cases too counts for
// none.
std::vector<std::string> count_cases(ToolOutput& output, CountedBy by,
                                     const std::function<ToolCommand(const std::string& name)>& alone,
                                     const std::function<FinishedProcess(const ProcessRun&)>& run);

// Reads valgrind's logs, a process each: adds their counts, and takes the highest peak of a process. The shell that
// Assay started is left out.
Counts counts_in_logs(CountedBy by, const std::vector<std::string>& logs);

// The counts as figures of the case `name` beside those of the output's last run.
void add_counts(ToolOutput& output, const std::string& name, const std::vector<Count>& counts);

}  // namespace assay::report
