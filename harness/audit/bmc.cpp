#include "harness/audit/bmc.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/process/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace assay::audit {

std::vector<std::string> bmc_log(const Root& root) {
  constexpr double max_seconds = 20;  // a controller sends some tens of entries a second
  if (!root.real()) return {"# not read: ASSAY_ROOT is not this machine"};
  const std::string program = find_program("ipmitool");
  if (program.empty()) return {"# not read: there is no ipmitool"};
  ProcessRun run;
  run.process.words = {program, "sel", "elist", "last", std::to_string(max_bmc_entries)};
  run.process.variables = inherited_variables();
  run.limit_seconds = max_seconds;
  std::vector<std::string> lines;
  try {
    const FinishedProcess done = run_process(run);
    std::string_view rest = done.output;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      if (const auto line = trim(rest.substr(0, end)); !line.empty()) lines.push_back(one_line(line, 400));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (!done.ended() || !done.problem.empty())
      lines.insert(lines.begin(),
                   fmt::format("# {}: ipmitool {}{}", lines.empty() ? "not read" : "cut short",
                               done.ended() ? done.problem : fmt::format("took more than {:g} s", max_seconds),
                               done.errors.empty() ? "" : ": " + one_line(last_lines(done.errors, 1))));
    else if (lines.size() >= max_bmc_entries)
      lines.insert(lines.begin(), fmt::format("# the newest {} entries; older ones are left out", max_bmc_entries));
  } catch (const Error& error) {
    lines = {fmt::format("# not read: {}", error.what())};
  }
  return lines;
}

}  // namespace assay::audit
