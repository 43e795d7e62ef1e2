// history record --counts: how many instructions a command takes, or each of its cases.
#include "cli/history/measured.h"

#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/history/pull_request.h"
#include "harness/process/child_counter.h"
#include "reports/exchange/instructions.h"

namespace assay::cli {

report::ToolOutput measure_and_count(const char* verb, const report::ToolCommand& command, Children& children,
                                     const std::string& how, const std::string& name, bool& counted) {
  const auto run = [&](const ProcessRun& one) { return children.run(one); };
  report::ToolCommand all = command;
  all.shell = history::with_cases(command.shell, {});
  const bool each = all.shell != command.shell;
  report::InstructionCount found;
  auto counter =
      how == "perf" && !each ? ChildCounter::start(ChildCounter::What::instructions, &found.why) : std::nullopt;
  report::ToolOutput output = measure(verb, all, children);
  if (counter && !(found.count = counter->count())) found.why = report::counter_shared;
  std::vector<std::string> not_counted;
  if (!output.problem.empty()) {
    not_counted = {"the command failed"};
  } else if (each) {
    const auto alone = [&](const std::string& one) {
      report::ToolCommand only = command;
      only.shell = history::with_cases(command.shell, {one});
      return only;
    };
    not_counted = report::count_cases(output, how, alone, run);
  } else {
    if (how == "valgrind") found = report::count_by_valgrind(command, run);
    if (found.count)
      report::add_instructions(output, name, *found.count);
    else
      not_counted = {found.why};
  }
  counted = not_counted.empty();
  if (!counted)
    say("assay: {}: --counts {}: no instructions were counted: {}\n", verb, how,
        one_line(first_few(not_counted), 1000));
  return output;
}

}  // namespace assay::cli
