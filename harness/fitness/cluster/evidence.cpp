// The commands are those of the vendors' manuals: NVIDIA DCGM User Guide ("dcgmi diag"), NVIDIA GPU Debug Guidelines
// (nvidia-bug-report.sh, field diagnostic), NVIDIA MFT User Manual (mlxlink), smartctl(8), nvme(1), ras-mc-ctl(8).
#include "harness/fitness/cluster/evidence.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/secrets.h"
#include "harness/core/sha256.h"
#include "harness/core/text.h"
#include "harness/core/utc.h"
#include "harness/json/masked.h"
#include "harness/json/members.h"
#include "harness/machine/problem_kinds.h"
#include "harness/record/run_dir.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace assay::fitness {

namespace {

struct Command {
  std::vector<VendorPart> parts;  // any of these
  const char* command;
  const char* why;
};

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      {{VendorPart::gpu, VendorPart::nvlink},
       "nvidia-bug-report.sh",
       "the driver's and the board's logs, for which NVIDIA and the server's vendor ask first; before any reset"},
      {{VendorPart::nvlink}, "nvidia-smi nvlink -e", "the error counters of each NVLink"},
      {{VendorPart::gpu, VendorPart::nvlink},
       "dcgmi diag -r 3",
       "NVIDIA's hardware tests, about 15 minutes on idle GPUs; part of the Data Center GPU Manager"},
      {{VendorPart::gpu, VendorPart::nvlink},
       "fieldiag  # the name and options are the vendor's",
       "NVIDIA's field diagnostic, which server vendors hand out; its log decides about a replacement. It needs the "
       "machine to itself, with the driver unloaded"},
      {{VendorPart::network},
       "mlxlink -d DEVICE -m -c -e",
       "state, module, bit error rate and eye opening of the NIC's link; part of the NVIDIA Firmware Tools"},
      {{VendorPart::network},
       "ibdiagnet",
       "errors and speeds of every link of an InfiniBand fabric, from any host on it"},
      {{VendorPart::pcie}, "lspci -vvv -s DEVICE", "link state and error registers of the device; as root"},
      {{VendorPart::memory},
       "ras-mc-ctl --errors",
       "memory errors by module, as the kernel reported them; part of rasdaemon"},
      {{VendorPart::memory, VendorPart::pcie},
       "ipmitool sel elist",
       "the management controller's log, which names modules, slots, fans and power supplies"},
      {{VendorPart::disk},
       "smartctl -x DEVICE",
       "the disk's own log and test results; for NVMe also nvme smart-log DEVICE"}};
  return all;
}

constexpr std::size_t max_devices = 8;  // that a command is repeated for

// Takes out what names a single part to its vendor.
void drop_serials(Json& json) {
  if (json.is_object()) json.erase("serial");
  if (json.is_structured())
    for (Json& inner : json) drop_serials(inner);
}

// The lines of records.jsonl of which a rank ran on the host.
std::string records_of(const std::filesystem::path& run, const std::string& host) {
  LineReader lines(run / "records.jsonl", max_line_bytes);
  std::string kept, line;
  while (lines.next(line)) {
    if (line.find(host) == line.npos) continue;  // most lines of a large run
    try {
      const Json record = parse_untrusted(line);
      const Json& ranks = member(record, "/ranks");
      if (std::ranges::any_of(ranks, [&](const Json& rank) { return text_member(rank, "/host") == host; }))
        kept += masked_line(line) + "\n";
    } catch (const Error&) {  // a line cut short by a kill
    }
  }
  return kept;
}

std::string events_text(const std::vector<KernelEvent>& events) {
  std::string text;
  for (const KernelEvent& event : events)
    text += fmt::format("{} {} {} {}{}\n",
                        event.unix_seconds ? utc_text(static_cast<std::time_t>(*event.unix_seconds)) : "unknown time",
                        event.kind, event.device, one_line(event.text, 2'000),
                        event.count > 1 ? fmt::format(" ({} times)", event.count) : "");
  return text;
}

// The part that a vendor has to look at for a problem of this id; absent: none.
std::optional<VendorPart> part_of(std::string_view id) {
  const ProblemKind* const kind = find_kind(id);
  return kind ? kind->part : std::nullopt;
}

std::string commands_text(const EvidenceInput& input) {
  std::string seen;
  for (const Finding& one : input.audit ? input.audit->problems : std::vector<Finding>())
    if (part_of(one.id)) seen += fmt::format("# {} {}: {}\n", one.id, one.device, one_line(one.seen));
  std::string text;
  for (const VendorCommand& one : input.commands) text += fmt::format("# {}\n{}\n\n", one.why, one.command);
  return text.empty() ? text : fmt::format("# To run on {}\n{}\n{}", input.host, seen, text);
}

}  // namespace

std::vector<VendorCommand> vendor_commands(const std::map<VendorPart, std::set<std::string>>& parts) {
  constexpr std::string_view place = "DEVICE";
  std::vector<VendorCommand> found;
  for (const Command& one : commands()) {
    std::set<std::string> devices;
    for (const VendorPart part : one.parts)
      if (const auto asked = parts.find(part); asked != parts.end())
        devices.insert(asked->second.begin(), asked->second.end());
    if (devices.empty()) continue;
    const std::string command = one.command;
    const std::size_t at = command.find(place);
    // Names of devices come from other machines, and this is a line of sh.
    std::erase_if(devices, [](const std::string& device) {
      return device.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/-") !=
             device.npos;
    });
    devices.erase("");
    if (at == command.npos || devices.empty() || devices.size() > max_devices) {
      found.push_back({command, one.why});
      continue;
    }
    for (const std::string& device : devices)
      found.push_back({std::string(command).replace(at, place.size(), device), one.why});
  }
  return found;
}

std::vector<ArchiveMember> evidence_members(const EvidenceInput& input) {
  std::vector<ArchiveMember> members;
  const auto add = [&](const std::string& name, std::string bytes) {
    if (!bytes.empty()) members.push_back({name, name.ends_with(".txt") ? mask_secrets(bytes) : std::move(bytes)});
  };
  Json audit = json_of(input.audit), environment = input.environment;
  if (!input.with_serials) drop_serials(audit), drop_serials(environment);
  if (audit.is_object()) audit.erase("bmc");
  if (input.audit && !input.audit->bmc.empty()) add("bmc.txt", joined(input.audit->bmc, "\n") + "\n");
  if (!audit.is_null()) add("audit.json", dump_document(audit, 2));
  if (input.audit) add("events.txt", events_text(input.audit->events));
  if (!environment.is_null()) add("environment.json", dump_document(environment, 2));
  std::set<std::string> names;
  for (const std::filesystem::path& run : input.runs) {
    std::string name = (run.has_filename() ? run : run.parent_path()).filename().string();
    for (int i = 2; !names.insert(name).second; ++i) name = fmt::format("{}-{}", run.filename().string(), i);
    add("records/" + name + ".jsonl", records_of(run, input.host));
  }
  if (!input.missed.empty()) add("floors.json", dump_document(json_of(input.missed), 2));
  add("commands.txt", commands_text(input));
  std::ranges::sort(members, [](const auto& a, const auto& b) { return a.name < b.name; });
  std::string manifest;
  for (const ArchiveMember& one : members) manifest += fmt::format("{}  {}\n", sha256_hex(one.bytes), one.name);
  members.push_back({"MANIFEST", std::move(manifest)});
  for (ArchiveMember& one : members) one.name = input.host + "/" + one.name;
  return members;
}

}  // namespace assay::fitness
