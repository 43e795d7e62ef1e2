#include "harness/machine/processes.h"

#include <unistd.h>

#include <algorithm>
#include <array>

namespace assay {

namespace {

// Starters of ranks: Open MPI 4 and 5, MPICH.
constexpr std::array<std::string_view, 8> launchers = {"mpirun",  "mpiexec", "mpiexec.hydra", "orterun",
                                                       "prterun", "orted",   "prted",         "hydra_pmi_proxy"};

bool starts_ranks(const Process& process, const std::string& own_name) {
  return process.name == own_name || std::ranges::find(launchers, std::string_view(process.name)) != launchers.end();
}

}  // namespace

std::optional<Process> read_process(const Root& root, Pid pid) {
  const auto stat = root.text("proc/" + std::to_string(pid) + "/stat");
  if (!stat) return std::nullopt;
  // pid (name) state parent ...: names may contain spaces and parentheses, so count from the last one.
  const auto open = stat->find('('), close = stat->rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  const auto rest = words(std::string_view(*stat).substr(close + 1));
  constexpr std::size_t parent = 1, flags = 6, user = 11, system = 12, children_user = 13, children_system = 14,
                        threads = 17, started = 19;
  constexpr std::int64_t kernel_thread = 0x00200000;
  if (rest.empty()) return std::nullopt;
  const auto number = [&](std::size_t column) {
    return column < rest.size() ? to_integer(rest[column]).value_or(0) : 0;
  };
  return Process{stat->substr(open + 1, close - open - 1),
                 number(parent),
                 number(user) + number(system),
                 number(children_user) + number(children_system),
                 (number(flags) & kernel_thread) != 0,
                 rest[0][0],
                 number(system),
                 number(children_system),
                 number(threads),
                 number(started)};
}

std::map<Pid, Process> read_processes(const Root& root) {
  std::map<Pid, Process> all;
  for (const auto& name : root.list("proc")) {
    const auto pid = name.find_first_not_of("0123456789") == std::string::npos ? to_integer(name) : std::nullopt;
    if (!pid) continue;
    if (auto process = read_process(root, *pid)) all.emplace(*pid, std::move(*process));
  }
  return all;
}

Pid own_pid(const Root& root) {
  return root.real() ? Pid{getpid()} : to_integer(root.link_name("proc/self").value_or("")).value_or(-1);
}

std::set<Pid> run_of_this_process(const Root& root, const std::map<Pid, Process>& all) {
  Pid top = own_pid(root);
  const auto self = all.find(top);
  if (self == all.end()) return {top};
  const std::string own_name = self->second.name;
  for (auto at = self; (at = all.find(at->second.parent)) != all.end() && starts_ranks(at->second, own_name);)
    top = at->first;
  std::set<Pid> run{top};
  // A child may have a smaller number than its parent, so go on until nothing is added.
  for (std::size_t before = 0; before != run.size();) {
    before = run.size();
    for (const auto& [pid, process] : all)
      if (run.contains(process.parent)) run.insert(pid);
  }
  return run;
}

}  // namespace assay
