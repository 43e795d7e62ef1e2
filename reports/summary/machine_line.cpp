#include "reports/summary/machine_line.h"

#include "harness/core/units.h"
#include "reports/data/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::report {

namespace {

std::string plural(double n, const char* word) { return fmt::format("{:.0f} {}{}", n, word, n == 1 ? "" : "s"); }

// Seconds from the first record's start to the last one's end, by what the records themselves measured.
double busy_seconds(const RunData& run) {
  double seconds = 0;
  for (const Record& record : run.records) seconds += record.seconds;
  return seconds;
}

std::string plan_text(const RunData& run) {
  const std::string name = text_member(run.run, "/plan/name");
  const auto seconds = number_member(run.run, "/seconds");
  const std::string cases = plural(static_cast<double>(run.final_records().size()), "case");
  const std::string time = " in " + format_seconds(seconds ? *seconds : busy_seconds(run));
  return (name.empty() ? "" : "plan " + name + ", ") + cases + time;
}

std::int64_t warning_count(const Json& findings) {
  if (!findings.is_array()) return 0;
  return std::count_if(findings.begin(), findings.end(),
                       [](const Json& finding) { return text_member(finding, "/severity") == "warning"; });
}

}  // namespace

std::string machine_line(const RunData& run) {
  std::vector<std::string> parts;
  if (const std::string machine = machine_of(run).name; !machine.empty()) parts.push_back(machine);
  parts.push_back(plan_text(run));
  if (const auto warnings = warning_count(member(run.run, "/findings")); warnings > 0)
    parts.push_back(plural(static_cast<double>(warnings), "finding") + " (assay env)");
  return fmt::format("{}", fmt::join(parts, " · "));
}

std::vector<std::string> environment_lines(const RunData& run) {
  std::vector<std::string> lines;
  const auto add = [&](const char* title, const std::string& value) {
    if (!value.empty()) lines.push_back(fmt::format("{}: {}", title, value));
  };
  const Json environment = member(run.run, "/environment");
  add("machine", machine_of(run).name);
  add("processor", text_member(environment, "/cpu/brand"));
  add("hosts", fmt::format("{}", fmt::join(machine_of(run).hosts, ", ")));
  add("system", text_member(environment, "/os/name"));
  add("kernel", text_member(environment, "/os/kernel"));
  add("virtual machine", text_member(environment, "/virtual_machine"));
  add("container", text_member(environment, "/container"));
  add("assay", text_member(environment, "/assay/version"));
  add("compiler", text_member(environment, "/assay/compiler"));
  if (const Json libraries = member(environment, "/libraries"); libraries.is_object())
    for (const auto& [name, version] : libraries.items())
      if (version.is_string()) add(name.c_str(), version.get<std::string>());
  add("started", text_member(run.run, "/started"));
  if (const Json labels = member(run.run, "/labels"); labels.is_object())
    for (const auto& [name, value] : labels.items())
      if (value.is_string()) lines.push_back(fmt::format("label {}: {}", name, value.get<std::string>()));
  if (const Json findings = member(run.run, "/findings"); findings.is_array())
    for (const Json& finding : findings)
      if (const std::string seen = text_member(finding, "/seen"); !seen.empty())
        lines.push_back(fmt::format("{}: {}", text_member(finding, "/severity"), seen));
  return lines;
}

}  // namespace assay::report
