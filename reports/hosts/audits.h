// The audits of many hosts side by side: what is wrong with which, and where hosts differ that should be alike. Pure
// functions over what `assay env --audit --json` printed on each host.
#pragma once

#include "harness/core/error.h"
#include "harness/json/json.h"
#include "reports/data/run_set.h"
#include "reports/model/document.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

// As in harness/audit/audit.h.
struct AuditedProblem {
  std::string id, severity, device, seen, meaning, fix;

  static void members(auto& self, auto& io) {
    io.required("id", self.id), io.required("severity", self.severity), io("device", self.device);
    io("seen", self.seen), io("meaning", self.meaning), io("fix", self.fix);
  }
};

struct AuditedGpu {
  std::string pci, uuid, name, slot;  // slot: the chassis's label; empty: unknown
  std::string serial = {};            // only if it was asked for

  static void members(auto& self, auto& io) {
    io("pci", self.pci), io.null_if_empty("uuid", self.uuid), io.null_if_empty("name", self.name);
    io.null_if_empty("slot", self.slot), io.sparse("serial", self.serial);
  }
};

struct AuditedEvent {
  std::optional<std::string> time, first;  // ISO 8601, of the last and the first message
  std::int64_t count = 1;
  std::string kind, device, text;
  std::int64_t code = 0;  // XID

  static void members(auto& self, auto& io) {
    io("time", self.time), io("first", self.first), io("count", self.count), io("kind", self.kind),
        io("device", self.device), io("code", self.code);
    io("text", self.text);
  }
};

enum class AuditState { ok, unreachable, error };
std::string_view name_of(AuditState state);

struct AuditedHost {
  std::string host;
  AuditState state = AuditState::ok;
  std::string error;   // why not ok
  std::string serial;  // of the host, only if it was asked for
  std::vector<AuditedProblem> problems;
  std::map<std::string, std::string> facts;
  std::vector<AuditedGpu> gpus;
  std::vector<AuditedEvent> events;

  std::size_t count(std::string_view severity) const;
};

// A host's answer, which is not trusted: `error` unless it is JSON with an audit of known form. Texts are cut to 2,000
// bytes and made free of control characters. Lists are kept whole: whoever asks limits the size of an answer.
AuditedHost read_audit(const std::string& host, std::string_view json);
AuditedHost no_audit(const std::string& host, AuditState state, std::string_view why);

// The most affected figure: the median of the hosts that differ over the median of the others.
struct DriftEffect {
  std::string title, metric;
  double ratio = 1;
  std::size_t differing = 0, others = 0;  // hosts with a figure
};

// A fact in which hosts differ, though they should not.
struct Drift {
  struct Differing {
    std::string host;
    std::optional<std::string> value;  // absent: the host has none
  };
  std::string fact;
  bool tie = false;                     // no value is the most frequent: all hosts differ
  std::optional<std::string> majority;  // absent also if most hosts have none
  std::size_t count = 0;                // hosts with the most frequent value
  std::vector<Differing> hosts;         // the others, as listed
  std::optional<DriftEffect> effect = {};
};

// Facts that are not equal on all hosts that answered. Names, addresses and numbers of single parts (hostnames, UUIDs,
// serials) differ by nature and are left out.
std::vector<Drift> drift_of(const std::vector<AuditedHost>& hosts);
// Looks in runs on each of the hosts for what each difference may cost. Hosts in a tie have no effect.
void add_effects(std::vector<Drift>& drift, const RunSet& runs);

Document audit_document(const std::vector<AuditedHost>& hosts, const std::vector<Drift>& drift);
// {"schema":1,"hosts":[...],"drift":[...]}
Json audits_json(const std::vector<AuditedHost>& hosts, const std::vector<Drift>& drift);
Json to_json(const AuditedHost& host);
Json to_json(const AuditedGpu& gpu);
// failed for a fault, or a host that did not answer as it should; drift is no failure.
ExitCode audit_code(const std::vector<AuditedHost>& hosts);

}  // namespace assay::report
