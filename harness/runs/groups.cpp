#include "harness/runs/groups.h"

#include "harness/core/text.h"
#include "harness/json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

namespace assay {

namespace {

// "side=a"; without the instance type, which names and titles have.
std::vector<std::string> labels_texts(const MachineRuns& group) {
  std::vector<std::string> texts;
  for (const auto& [label, value] : group.labels)
    if (label != "instance_type") texts.push_back(label + "=" + value);
  return texts;
}

std::string title_of(const MachineRuns& group) {
  std::vector<std::string> parts{group.machine.name.empty() ? "unknown machine" : group.machine.name};
  if (!group.machine.hosts.empty()) {
    const auto& hosts = group.machine.hosts;
    parts.push_back(hosts.size() > 2 ? fmt::format("{} and {} more hosts", hosts.front(), hosts.size() - 1)
                                     : joined(hosts));
  }
  std::ranges::move(labels_texts(group), std::back_inserter(parts));
  return joined(parts, " · ");
}

// The instance type, else the GPU or CPU; of equal ones also the host, then the labels, then a number.
void name_each(std::vector<MachineRuns>& groups) {
  const auto add_to_equal_ones = [&](const auto& more) {
    std::map<std::string, std::vector<MachineRuns*>> named;
    for (MachineRuns& one : groups) named[one.name].push_back(&one);
    for (const auto& [name, equal] : named)
      for (std::size_t i = 0; equal.size() > 1 && i < equal.size(); ++i)
        if (const std::string text = more(*equal[i], i); !text.empty()) equal[i]->name += " · " + text;
  };
  for (MachineRuns& one : groups) {
    const RunMachine& machine = one.machine;
    one.name = !machine.instance_type.empty() ? machine.instance_type
               : !machine.gpu.empty()         ? machine.gpu
               : !machine.cpu.empty()         ? machine.cpu
                                              : "unknown machine";
  }
  add_to_equal_ones([](const MachineRuns& one, std::size_t) {
    return one.machine.hosts.empty() ? "" : one.machine.hosts.front().substr(0, one.machine.hosts.front().find('.'));
  });
  add_to_equal_ones([](const MachineRuns& one, std::size_t) { return joined(labels_texts(one)); });
  add_to_equal_ones([](const MachineRuns&, std::size_t i) { return std::to_string(i + 1); });
}

std::vector<CaseRuns> cases_of(const RunSet& runs, const std::vector<std::size_t>& of) {
  std::vector<CaseRuns> cases;
  std::map<std::pair<Identity, std::string>, std::size_t> places;
  for (auto run = of.rbegin(); run != of.rend(); ++run) {
    for (const Entry& entry : runs.entries_of(*run)) {
      const auto [place, fresh] =
          places.try_emplace({entry.record->identity().on_any_host(), protocol_of(*entry.record)}, cases.size());
      if (fresh) cases.emplace_back();
      cases[place->second].entries.push_back(&entry);
    }
  }
  for (CaseRuns& one : cases) std::ranges::reverse(one.entries);
  return cases;
}

std::vector<MachineRuns> group(const RunSet& runs) {
  std::vector<MachineRuns> groups;
  std::map<std::pair<std::string, Attributes>, std::size_t> places;
  for (std::size_t i = 0; i < runs.runs().size(); ++i) {
    MachineRuns one{machine_of(runs.runs()[i]), labels_of(runs.runs()[i]), {}, {}, {}, {}};
    const std::string key = fmt::format("{}\n{}", one.machine.name, fmt::join(one.machine.hosts, "\n"));
    const auto [place, fresh] = places.try_emplace({key, one.labels}, groups.size());
    if (fresh) groups.push_back(std::move(one));
    groups[place->second].runs.push_back(i);
  }
  std::map<std::string, int> seen;
  for (MachineRuns& one : groups) {
    one.cases = cases_of(runs, one.runs);
    one.title = title_of(one);
    // Titles name only the first of many hosts, so several may be equal.
    if (const int n = ++seen[one.title]; n > 1) one.title += fmt::format(" ({})", n);
  }
  name_each(groups);
  return groups;
}

}  // namespace

Attributes labels_of(const RunData& run) {
  Attributes labels;
  if (const Json& given = member(run.run, "/labels"); given.is_object())
    for (const auto& [name, value] : given.items())
      if (value.is_string()) labels[name] = value.get<std::string>();
  return labels;
}

struct RunSet::Groups {
  std::vector<MachineRuns> machines;
};

const std::vector<MachineRuns>& by_machine(const RunSet& runs) {
  if (!runs.groups_) runs.groups_ = std::make_shared<RunSet::Groups>(RunSet::Groups{group(runs)});
  return runs.groups_->machines;
}

bool hosts_of_one_run(const RunSet& runs) { return runs.directories() < by_machine(runs).size(); }

}  // namespace assay
