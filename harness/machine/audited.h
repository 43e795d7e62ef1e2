// What `assay audit --json` says of one machine: written by the audit, read by everybody who compares machines.
#pragma once

#include "harness/json/shared.h"
#include "harness/machine/finding.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// Messages of the kernel of one kind, device, code and problem, counted, so that a flood of one hides no other.
struct KernelEvent {
  std::optional<double> unix_seconds;   // of the last message; absent: not known
  std::optional<double> first_seconds;  // of the first
  std::int64_t count = 1;               // those before the last boot are counted apart
  std::string kind;       // "xid", "aer", "mce", "edac", "thermal", "link", "oom", "hung-task", "io", "read-only"
  std::string device;     // empty: the message names none
  std::int64_t code = 0;  // XID number; 0 for other kinds
  std::string text;       // the last message, without control characters
  std::string problem;    // id of the kind of problem that it is evidence of; not in JSON
  std::optional<double> uptime_seconds = {};  // of the last message since its boot, if its time is not known
  bool earlier_boot = false;                  // than the last; not in JSON

  static void members(auto& self, auto& io) {
    io.utc("time", self.unix_seconds), io.utc("first", self.first_seconds);
    io("count", self.count), io("kind", self.kind);
    io("device", self.device), io("code", self.code), io("text", self.text);
    io.sparse("uptime", self.uptime_seconds);
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

struct AuditedMachine {
  std::vector<Finding> problems;             // faults first
  std::map<std::string, std::string> facts;  // "driver", "kernel", "bios", "nccl", "sysctl vm.overcommit_memory", ...
  std::vector<KernelEvent> events = {};      // of past days, by their last message; those of unknown time at the end
  std::vector<AuditedGpu> gpus = {};
  std::optional<std::string> serial = {};  // of the machine, only if it was asked for
  std::vector<std::string> bmc = {};  // its management controller's log (harness/audit/bmc.h), only if it was asked for
  SharedJson inventory = {};          // the machine as an expectation (expectation.h); null: not said

  // Names of its GPUs and its processor, for fitness::require_hardware().
  std::vector<std::string> hardware_names() const {
    std::vector<std::string> names;
    for (const AuditedGpu& gpu : gpus) names.push_back(gpu.name);
    for (const char* fact : {"cpu", "cpu brand"})
      if (const auto known = facts.find(fact); known != facts.end()) names.push_back(known->second);
    return names;
  }

  static void members(auto& self, auto& io) {
    io.required("problems", self.problems), io.required("facts", self.facts), io("events", self.events);
    io("gpus", self.gpus), io.sparse("serial", self.serial), io.sparse("bmc", self.bmc);
    io.sparse("inventory", self.inventory);
  }
};

}  // namespace assay
