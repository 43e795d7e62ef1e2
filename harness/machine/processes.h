// Processes as /proc lists them, and which of them belong to this run.
#pragma once

#include "harness/machine/root.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace assay {

using Pid = std::int64_t;

struct Process {
  std::string name;  // the executable's name, at most 15 characters
  Pid parent = 0;
  std::int64_t ticks = 0;            // CPU time of all its threads, in the kernel's clock ticks (sysconf(_SC_CLK_TCK))
  std::int64_t children = 0;         // CPU time of the children that it has waited for, and of their children
  bool kernel = false;               // a kernel thread
  char state = 0;                    // as proc(5) has it: R running, S sleeping, D blocked, Z a zombie
  std::int64_t system = 0;           // of `ticks`, those spent in the kernel
  std::int64_t children_system = 0;  // of `children`
  std::int64_t threads = 0;
  std::int64_t started = 0;  // ticks after boot: with the id it tells a process from a later one of the same id
};

// Absent if the process has ended.
std::optional<Process> read_process(const Root& root, Pid pid);
// All processes that this process can see.
std::map<Pid, Process> read_processes(const Root& root);
// This process's own id below `root`.
Pid own_pid(const Root& root);

// The run that this process belongs to: its topmost ancestor that is Assay or an MPI launcher, without any other kind
// of process between, and all processes that this ancestor has started.
std::set<Pid> run_of_this_process(const Root& root, const std::map<Pid, Process>& all);

}  // namespace assay
