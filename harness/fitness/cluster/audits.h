// The audits of many hosts side by side: what is wrong with which, and where hosts differ that should be alike. Pure
// functions over what `assay audit --json` printed on each host.
#pragma once

#include "harness/core/error.h"
#include "harness/machine/audited.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::fitness {

enum class AuditState { ok, unreachable, error };
constexpr auto words(AuditState) { return std::to_array<std::string_view>({"ok", "unreachable", "error"}); }

struct AuditedHost : AuditedMachine {
  std::string host;
  AuditState state = AuditState::ok;
  std::string error;      // why not ok
  std::string banner;     // what the host printed before or after its answer, as its shell's files do
  bool expected = false;  // it was compared with an expectation; not in JSON

  std::size_t count(Severity severity) const;
  static void members(auto& self, auto& io) {
    io.required("host", self.host), io.required("state", self.state), io.null_if_empty("error", self.error);
    io("problems", self.problems), io("facts", self.facts), io("gpus", self.gpus), io("events", self.events);
    io.sparse("serial", self.serial), io.sparse("banner", self.banner), io.sparse("bmc", self.bmc);
    io.sparse("inventory", self.inventory);
  }
};

// A host's answer, which is not trusted: `error` unless it is JSON with an audit of known form, whatever stands in
// other lines around it. Texts are cut to 2,000
// bytes and made free of control characters. Lists are kept whole: whoever asks limits the size of an answer.
AuditedHost read_audit(const std::string& host, std::string_view json);
AuditedHost no_audit(const std::string& host, AuditState state, std::string_view why);

// The most affected figure: the median of the hosts that differ over the median of the others.
struct DriftEffect {
  std::string title, metric;
  double ratio = 1;
  std::size_t differing = 0, others = 0;  // hosts with a figure

  static void members(auto& self, auto& io) {
    io("case", self.title), io("metric", self.metric), io("ratio", self.ratio), io("differing", self.differing);
    io("others", self.others);
  }
};

// A fact in which hosts differ, though they should not.
struct Drift {
  struct Differing {
    std::string host;
    std::optional<std::string> value;  // absent: the host has none

    static void members(auto& self, auto& io) { io("host", self.host), io("value", self.value); }
  };
  std::string fact;
  bool tie = false;                     // no value is the most frequent: all hosts differ
  std::optional<std::string> majority;  // absent also if most hosts have none
  std::size_t count = 0;                // hosts with the most frequent value
  std::vector<Differing> hosts;         // the others, as listed
  std::optional<DriftEffect> effect = {};

  static void members(auto& self, auto& io) {
    io("fact", self.fact), io("majority", self.majority), io("count", self.count), io("tie", self.tie);
    io("hosts", self.hosts), io.sparse("effect", self.effect);
  }
};

// As `assay audit --hostfile --json` prints it.
struct AuditedFleet {
  int schema = 1;
  std::string error = {};  // why there are no hosts
  std::vector<AuditedHost> hosts = {};
  std::vector<Drift> drift = {};

  // failed for a fault, or a host that did not answer as it should; no_data if what was expected could not be judged.
  // Drift is no failure.
  ExitCode code() const;
  static void members(auto& self, auto& io) {
    io("schema", self.schema), io.sparse("error", self.error), io("hosts", self.hosts), io("drift", self.drift);
  }
};

// Facts that are not equal on all hosts that answered. Names, addresses and numbers of single parts (hostnames, UUIDs,
// serials) differ by nature and are left out.
std::vector<Drift> drift_of(const std::vector<AuditedHost>& hosts);

}  // namespace assay::fitness
