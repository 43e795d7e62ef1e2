// history record --counts: what a command does, or each of its cases, counted.
#include "cli/history/measured.h"

#include "harness/core/error.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/history/pull_request.h"

#include <algorithm>
#include <optional>

namespace assay::cli {

std::vector<report::CountedBy> counts_of(const char* verb, const std::vector<std::string>& words) {
  std::vector<report::CountedBy> counts;
  const auto has = [&](report::CountedBy by) { return std::ranges::find(counts, by) != counts.end(); };
  for (const std::string& word : words)
    if (const auto by = *from_word<report::CountedBy>(word); !has(by)) counts.push_back(by);
  if (has(report::CountedBy::perf) && has(report::CountedBy::valgrind))
    throw UsageError(fmt::format("{}: --counts: perf and valgrind both count instructions: leave one out", verb));
  return counts;
}

report::ToolOutput measure_and_count(const char* verb, const report::ToolCommand& command, Children& children,
                                     const std::vector<report::CountedBy>& counts, const std::string& name,
                                     bool& counted) {
  using report::CountedBy;
  const auto run = [&](const ProcessRun& one) { return children.run(one); };
  const auto only = [&](const std::vector<std::string>& cases) {
    report::ToolCommand one = command;
    one.shell = history::with_cases(command.shell, cases);
    return one;
  };
  const report::ToolCommand all = only({});
  const bool each = all.shell != command.shell;
  report::Counts executed;
  auto counter = std::ranges::count(counts, CountedBy::perf) > 0 && !each
                     ? ChildCounter::start(ChildCounter::What::instructions, &executed.why)
                     : std::nullopt;
  report::ToolOutput output = measure(
      verb, all, [&](const ProcessRun& one) { return counter ? report::run_without_chance(one, run) : run(one); });
  if (counter) executed = report::instructions_of(*counter);
  for (const CountedBy by : counts) {
    std::vector<std::string> not_counted;
    if (!output.problem.empty()) {
      not_counted = {"the command failed"};
    } else if (each) {
      not_counted = report::count_cases(
          output, by, [&](const std::string& one) { return only({one}); }, run);
    } else {
      const report::Counts found = by == CountedBy::perf ? executed : report::count_under_valgrind(command, by, run);
      report::add_counts(output, name, found.counts);
      if (found.counts.empty()) not_counted = {found.why};
    }
    if (not_counted.empty()) continue;
    counted = false;
    say("assay: {}: --counts {}: no {} were counted: {}\n", verb, name_of(by), report::counted_things(by),
        one_line(first_few(not_counted), 1000));
  }
  return output;
}

}  // namespace assay::cli
