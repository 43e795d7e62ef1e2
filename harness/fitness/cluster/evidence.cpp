// The commands are those of the vendors' manuals: NVIDIA DCGM User Guide ("dcgmi diag"), NVIDIA GPU Debug Guidelines
// (nvidia-bug-report.sh, field diagnostic), NVIDIA MFT User Manual (mlxlink), smartctl(8), nvme(1), ras-mc-ctl(8).
#include "harness/fitness/cluster/evidence.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/sha256.h"
#include "harness/core/text.h"
#include "harness/core/utc.h"
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

std::set<VendorPart> parts_of_checks(const std::vector<std::string>& checks, bool has_gpus) {
  constexpr std::string_view between_hosts[] = {"collective", "pairs", "link", "fabric", "allreduce", "all_reduce"};
  std::set<VendorPart> parts;
  for (const std::string& check : checks) {
    if (check == "device_errors") parts.insert({VendorPart::pcie, VendorPart::network, VendorPart::memory});
    if (has_gpus || check == "gpu_errors") parts.insert(VendorPart::gpu);
    for (const std::string_view word : between_hosts)
      if (check.find(word) != check.npos) parts.insert(VendorPart::network);
  }
  return parts;
}

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
        kept += line + "\n";
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

std::vector<VendorCommand> vendor_commands(const std::vector<std::string>& problem_ids,
                                           const std::vector<std::string>& failed_checks, bool has_gpus) {
  std::set<VendorPart> parts = parts_of_checks(failed_checks, has_gpus);
  for (const std::string& id : problem_ids)
    if (const auto part = part_of(id)) parts.insert(*part);
  std::vector<VendorCommand> found;
  for (const Command& one : commands())
    if (std::ranges::any_of(one.parts, [&](VendorPart part) { return parts.contains(part); }))
      found.push_back({one.command, one.why});
  return found;
}

std::vector<ArchiveMember> evidence_members(const EvidenceInput& input) {
  std::vector<ArchiveMember> members;
  const auto add = [&](const std::string& name, std::string bytes) {
    if (!bytes.empty()) members.push_back({name, std::move(bytes)});
  };
  Json audit = json_of(input.audit), environment = input.environment;
  if (!input.with_serials) drop_serials(audit), drop_serials(environment);
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
