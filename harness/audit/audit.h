// The audit of one machine: what is broken or set up badly on it, what its kernel logged in past days, and the facts
// that hosts of one kind should share. Read from files below a root, so that folders of files test all of it.
#pragma once

#include "harness/json/fwd.h"
#include "harness/machine/findings.h"
#include "harness/machine/machine.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::audit {

enum class Severity { fault, warning, info };  // fault: hard evidence that the machine must not be used
std::string_view name_of(Severity severity);

struct Problem {
  std::string id;  // "xid-fatal", "gpu-missing": stable, for scripts
  Severity severity = Severity::warning;
  std::string device;   // "0000:1b:00.0", "mlx5_0", "eth0", "/scratch"; empty: the host
  std::string seen;     // with its figures: "XID 79 at 2026-11-20T03:12:44Z, 2 times"
  std::string meaning;  // "the GPU has fallen off the bus"
  std::string fix;
};

struct ProblemKind {
  std::string id;
  Severity severity = Severity::warning;  // of a problem of this kind
  std::string meaning, fix;
};

// Messages of one kind, device, code and problem, counted, so that a flood of one hides no other.
struct KernelEvent {
  std::optional<double> unix_seconds;   // of the last message; absent: not known
  std::optional<double> first_seconds;  // of the first
  std::int64_t count = 1;               // those before the last boot are counted apart
  std::string kind;       // "xid", "aer", "mce", "edac", "thermal", "link", "oom", "hung-task", "io", "read-only"
  std::string device;     // empty: the message names none
  std::int64_t code = 0;  // XID number; 0 for other kinds
  std::string text;       // the last message, without control characters
  std::string problem;    // id of the kind of problem that it is evidence of
};

struct Audit {
  Machine machine;
  std::vector<Finding> findings;             // of the machine now; the problems include them
  std::vector<Problem> problems;             // faults first
  std::map<std::string, std::string> facts;  // "driver", "kernel", "bios", "nccl", "sysctl vm.overcommit_memory", ...
  std::vector<KernelEvent> events;           // of past days, by their last message; those of unknown time at the end
};

// Only reads. Events older than `days` before now are left out.
Audit audit_machine(const Root& root, double now_unix_seconds, double days = 7);
// Every problem id that audit_machine can report, in the order of severity.
std::vector<ProblemKind> problem_kinds();
// {"problems":[{id,severity,device,seen,meaning,fix}],"facts":{},
//  "events":[{time, first: ISO or null,count,kind,device,code,text}]}; time and text are the last message's.
Json to_json(const Audit& audit);

}  // namespace assay::audit
