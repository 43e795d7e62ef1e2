// What goes to the vendor for one host that failed: its audit, its records, the floors it missed, and the vendor's own
// diagnostics to run on it. The members of an ordinary tar archive (harness/archive/tar.h).
#pragma once

#include "harness/archive/tar.h"
#include "harness/fitness/cluster/audits.h"
#include "harness/json/json.h"
#include "harness/machine/problem_kinds.h"

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace assay::fitness {

using ArchiveMember = TarMember;

// A figure of the host beyond its limit, in base units.
struct MissedFloor {
  std::string key, metric, unit;
  std::string bound = "at_least";  // or "at_most"
  std::optional<double> value, limit;
  std::string source;  // the floor's
  std::string reason;

  static void members(auto& self, auto& io) {
    io("key", self.key), io("metric", self.metric), io("unit", self.unit), io("bound", self.bound);
    io("value", self.value), io("limit", self.limit), io("source", self.source), io("reason", self.reason);
  }
};

// A program of a vendor that tells more about a failure, and why to run it here.
struct VendorCommand {
  std::string command;  // a line of sh; DEVICE and other words in capitals are to be filled in
  std::string why;
  bool operator==(const VendorCommand&) const = default;
};

// The commands for these parts, for each of the part's devices where a command takes one ("" leaves DEVICE to the
// reader), in the order in which to run them.
std::vector<VendorCommand> vendor_commands(const std::map<VendorPart, std::set<std::string>>& parts);

struct EvidenceInput {
  std::string host;
  std::optional<AuditedHost> audit;          // absent: it did not answer, or was not asked
  Json environment;                          // of `assay env --json` or run.json; null: unknown
  std::vector<std::filesystem::path> runs;   // run directories, of whose records those of this host are taken
  std::vector<MissedFloor> missed;           // of this host
  std::vector<VendorCommand> commands = {};  // to run on it next
  bool with_serials = false;                 // else members named "serial" are taken out of the audit
};

// "HOST/audit.json", "events.txt", "bmc.txt" (the management controller's log, or why it was not read),
// "environment.json", "records/NAME.jsonl" (the host's lines), "floors.json", "commands.txt" and "MANIFEST": the
// SHA-256 of each, as `sha256sum -c` reads it. What is unknown or empty is left out, and secrets are masked. Equal
// input gives equal bytes. Throws Error if a run cannot be read.
std::vector<ArchiveMember> evidence_members(const EvidenceInput& input);

}  // namespace assay::fitness
