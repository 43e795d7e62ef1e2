#include "reports/summary/machine_line.h"

#include "harness/core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::report {

namespace {

// A member by JSON pointer, whatever the file holds there; null when absent.
Json member(const Json& json, const char* pointer) {
  const Json::json_pointer at(pointer);
  return json.is_structured() && json.contains(at) ? json.at(at) : Json(nullptr);
}

std::string text(const Json& json, const char* pointer) {
  const Json value = member(json, pointer);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::optional<double> number(const Json& json, const char* pointer) {
  const Json value = member(json, pointer);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::string plural(double n, const char* word) { return fmt::format("{:.0f} {}{}", n, word, n == 1 ? "" : "s"); }

std::string memory_text(const Json& environment) {
  auto bytes = number(environment, "/memory/limit_bytes");
  if (!bytes) bytes = number(environment, "/memory/installed_bytes");
  if (!bytes) bytes = number(environment, "/memory/total_bytes");
  return bytes ? fmt::format("{:.0f} GiB", std::round(*bytes / 0x1p30)) : std::string();
}

// "8 x NVIDIA H200", or that there is none.
std::string gpu_text(const Json& environment) {
  const Json gpus = member(environment, "/gpus");
  if (!gpus.is_array()) return {};
  if (gpus.empty()) return "no GPU";
  const std::string name = text(gpus.front(), "/name");
  return fmt::format("{} x {}", gpus.size(), name.empty() ? "GPU" : name);
}

std::string machine_text(const Json& environment) {
  std::vector<std::string> parts;
  if (const std::string name = text(environment, "/cpu/name"); !name.empty()) parts.push_back(name);
  if (const auto cores = number(environment, "/cpu/usable_cores")) parts.push_back(plural(*cores, "core"));
  if (const std::string memory = memory_text(environment); !memory.empty()) parts.push_back(memory);
  if (const std::string gpus = gpu_text(environment); !gpus.empty()) parts.push_back(gpus);
  if (const std::string type = text(environment, "/cloud/instance_type"); !type.empty()) parts.push_back(type);
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Seconds from the first record's start to the last one's end, by what the records themselves measured.
double busy_seconds(const RunData& run) {
  double seconds = 0;
  for (const Record& record : run.records) seconds += record.seconds;
  return seconds;
}

std::string plan_text(const RunData& run) {
  const std::string name = text(run.run, "/plan/name");
  const auto seconds = number(run.run, "/seconds");
  const std::string cases = plural(static_cast<double>(run.final_records().size()), "case");
  const std::string time = " in " + format_seconds(seconds ? *seconds : busy_seconds(run));
  return (name.empty() ? "" : "plan " + name + ", ") + cases + time;
}

std::int64_t warning_count(const Json& findings) {
  if (!findings.is_array()) return 0;
  return std::count_if(findings.begin(), findings.end(),
                       [](const Json& finding) { return text(finding, "/severity") == "warning"; });
}

}  // namespace

std::string machine_line(const RunData& run) {
  std::vector<std::string> parts;
  if (const std::string machine = machine_text(member(run.run, "/environment")); !machine.empty())
    parts.push_back(machine);
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
  add("machine", machine_text(environment));
  add("processor", text(environment, "/cpu/brand"));
  if (const Json hosts = member(environment, "/hostnames"); hosts.is_array()) {
    std::vector<std::string> names;
    for (const Json& host : hosts)
      if (host.is_string()) names.push_back(host.get<std::string>());
    add("hosts", fmt::format("{}", fmt::join(names, ", ")));
  }
  add("system", text(environment, "/os/name"));
  add("kernel", text(environment, "/os/kernel"));
  add("virtual machine", text(environment, "/virtual_machine"));
  add("container", text(environment, "/container"));
  add("assay", text(environment, "/assay/version"));
  add("compiler", text(environment, "/assay/compiler"));
  if (const Json libraries = member(environment, "/libraries"); libraries.is_object())
    for (const auto& [name, version] : libraries.items())
      if (version.is_string()) add(name.c_str(), version.get<std::string>());
  add("started", text(run.run, "/started"));
  if (const Json labels = member(run.run, "/labels"); labels.is_object())
    for (const auto& [name, value] : labels.items())
      if (value.is_string()) lines.push_back(fmt::format("label {}: {}", name, value.get<std::string>()));
  if (const Json findings = member(run.run, "/findings"); findings.is_array())
    for (const Json& finding : findings)
      if (const std::string seen = text(finding, "/seen"); !seen.empty())
        lines.push_back(fmt::format("{}: {}", text(finding, "/severity"), seen));
  return lines;
}

}  // namespace assay::report
