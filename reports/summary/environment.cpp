#include "reports/summary/sections.h"

#include "harness/core/text.h"
#include "harness/json/json.h"
#include "harness/machine/finding.h"
#include "harness/runs/groups.h"
#include "reports/model/cells.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::report {

namespace {

constexpr std::size_t max_columns = 6;  // machines side by side

using Facts = std::vector<std::pair<std::string, std::string>>;  // in display order

std::string number_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  return value.is_number() ? value.dump() : std::string();
}

std::string join_texts(const Json& list) {
  std::vector<std::string> parts;
  if (list.is_array())
    for (const Json& item : list)
      if (std::string text = number_text(item); !text.empty()) parts.push_back(std::move(text));
  return joined(parts);
}

// "abc123, with uncommitted changes".
std::string commit_of(const Json& run) {
  std::string text = text_member(run, "/git/commit").substr(0, 12);
  if (const Json& dirty = member(run, "/git/dirty"); !text.empty() && dirty.is_boolean() && dirty.get<bool>())
    text += ", with uncommitted changes";
  return text;
}

Facts facts_of(const RunData& run) {
  Facts facts;
  const auto add = [&](const std::string& name, std::string value) {
    if (!value.empty()) facts.emplace_back(name, std::move(value));
  };
  const Json& environment = member(run.run, "/environment");
  const auto text = [&](const char* pointer) { return number_text(member(environment, pointer)); };
  const RunMachine machine = machine_of(run);
  add("machine", machine.name);
  add("processor", text("/cpu/brand"));
  add("microcode", text("/cpu/microcode"));
  add("hosts", machine.hosts.size() > 8 ? fmt::format("{} hosts, {} …", machine.hosts.size(), machine.hosts.front())
                                        : joined(machine.hosts));
  add("provider", machine.provider);
  add("instance type", machine.instance_type);
  add("region", machine.region);
  add("governors", member(environment, "/cpu/governors").is_array() ? join_texts(member(environment, "/cpu/governors"))
                                                                    : text("/cpu/governors"));
  add("turbo", text("/cpu/turbo"));
  add("memory pages", text("/memory/transparent_huge_pages"));
  if (const Json& gpus = member(environment, "/gpus"); gpus.is_array())
    for (std::size_t i = 0; i < std::min<std::size_t>(gpus.size(), 8); ++i) {
      std::vector<std::string> parts;
      for (const char* name : {"/name", "/uuid", "/pci", "/pci_bus_id"})
        if (std::string value = number_text(member(gpus[i], name)); !value.empty()) parts.push_back(std::move(value));
      add(fmt::format("GPU {}", i), joined(parts));
    }
  if (const Json& drivers = member(environment, "/drivers"); drivers.is_object())
    for (const auto& [name, version] : drivers.items()) add("driver " + name, number_text(version));
  add("system", text("/os/name"));
  add("kernel", text("/os/kernel"));
  add("virtual machine", text("/virtual_machine"));
  add("container", text("/container"));
  add("assay", text("/assay/version"));
  add("commit", commit_of(run.run));
  add("compiler", text("/assay/compiler"));
  if (const Json& libraries = member(environment, "/libraries"); libraries.is_object())
    for (const auto& [name, version] : libraries.items()) add(name, number_text(version));
  add("plan", text_member(run.run, "/plan/name"));
  add("started", text_member(run.run, "/started"));
  add("command", [&] {
    // A path is cut to its last part: a report that is passed on should not reveal paths.
    const Json& argv = member(run.run, "/argv");
    if (!argv.is_array() || argv.empty() || !argv.front().is_string()) return std::string();
    std::string words;
    for (const Json& word : argv) {
      std::string one = number_text(word);
      one = one.substr(one.starts_with('/') ? one.rfind('/') + 1 : 0);
      words += (words.empty() ? "" : " ") + one;
    }
    return words;
  }());
  if (const Json& labels = member(run.run, "/labels"); labels.is_object())
    for (const auto& [name, value] : labels.items()) add("label " + name, number_text(value));
  return facts;
}

// Facts of a machine's newest run, with a note if older runs differ.
std::map<std::string, std::string> facts_of(const RunSet& runs, const MachineRuns& machine,
                                            std::vector<std::string>& order) {
  std::map<std::string, std::set<std::string>> others;
  std::map<std::string, std::string> facts;
  for (std::size_t i = 0; i < machine.runs.size(); ++i) {
    for (auto& [name, value] : facts_of(runs.runs()[machine.runs[i]])) {
      if (std::ranges::find(order, name) == order.end()) order.push_back(name);
      others[name].insert(value);
      facts[name] = std::move(value);
    }
  }
  for (auto& [name, value] : facts)
    if (const std::size_t n = others[name].size(); n > 1) value += fmt::format(" (newest of {})", n);
  return facts;
}

std::optional<Table> findings_table(const RunSet& runs, const std::vector<MachineRuns>& machines) {
  Table table{"findings", "Findings that affect the figures", {{"severity"}, {"seen"}, {"effect"}, {"fix"}}};
  if (machines.size() > 1) table.columns.push_back({"machines", "machines"});
  std::map<std::vector<std::string>, std::vector<std::string>> found;  // severity, seen, effect, fix: machines
  for (const MachineRuns& machine : machines) {
    for (const auto& one : read_spoilers(member(runs.runs()[machine.runs.back()].run, "/findings")))
      if (!one.seen.empty()) found[{word_of(one.severity), one.seen, one.meaning, one.fix}].push_back(machine.name);
  }
  // Warnings first.
  for (const bool warnings : {true, false}) {
    for (const auto& [what, where] : found) {
      if ((what[0] == "warning") != warnings) continue;
      std::vector<Cell> row{{what[0], nullptr, warnings ? Tone::warn : Tone::plain}};
      for (std::size_t i = 1; i < what.size(); ++i) row.push_back({what[i], nullptr});
      if (machines.size() > 1)
        row.push_back(
            {where.size() > 2 ? fmt::format("{} and {} more", where.front(), where.size() - 1) : joined(where, "; "),
             where});
      table.rows.push_back(std::move(row));
    }
  }
  return table.rows.empty() ? std::nullopt : std::optional(std::move(table));
}

}  // namespace

std::vector<Section> environment_sections(const RunSet& runs) {
  const std::vector<MachineRuns>& machines = by_machine(runs);
  const std::size_t columns = std::min(machines.size(), max_columns);
  std::vector<std::string> order;
  std::vector<std::map<std::string, std::string>> facts;
  for (std::size_t i = 0; i < columns; ++i) facts.push_back(facts_of(runs, machines[i], order));
  Table table{"environment", "", {{"fact"}}};
  for (std::size_t i = 0; i < columns; ++i)
    table.columns.push_back({machines.size() == 1 ? "value" : fmt::format("machine_{}", i + 1),
                             machines.size() == 1 ? "value" : machines[i].name});
  for (const std::string& name : order) {
    std::vector<Cell> row{{name, nullptr}};
    std::set<std::string> distinct;
    for (const auto& of_machine : facts) {
      const auto found = of_machine.find(name);
      const std::string value = found == of_machine.end() ? "" : found->second;
      distinct.insert(value);
      row.push_back(value.empty() ? no_cell() : Cell{value, nullptr});
    }
    if (distinct.size() > 1)
      for (Cell& cell : row)
        if (cell.tone == Tone::plain) cell.tone = Tone::warn;
    table.rows.push_back(std::move(row));
  }
  Section section{"environment", "Environment", {}, false};
  if (!table.rows.empty()) section.blocks.push_back(std::move(table));
  if (machines.size() > columns)
    section.blocks.push_back(Text{plural(machines.size() - columns, "more machine") + " not shown."});
  if (auto findings = findings_table(runs, machines)) section.blocks.push_back(std::move(*findings));
  if (section.blocks.empty()) return {};
  return {std::move(section)};
}

}  // namespace assay::report
