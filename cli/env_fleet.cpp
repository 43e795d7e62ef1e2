#include "cli/env_fleet.h"

#include "cli/files.h"
#include "harness/hosts/ask_hosts.h"
#include "harness/hosts/slurm.h"
#include "harness/json/members.h"
#include "harness/machine/identities.h"

#include <fmt/format.h>

#include <map>

namespace assay::cli {

namespace {

fitness::AuditedHost audited(const HostAnswer& answer) {
  using fitness::AuditState;
  if (!answer.exit_code) return fitness::no_audit(answer.host, AuditState::unreachable, answer.err);
  // 1: a fault was found.
  if (*answer.exit_code != 0 && *answer.exit_code != 1)
    return fitness::no_audit(
        answer.host, AuditState::error,
        fmt::format("exit code {}{}{}", *answer.exit_code, answer.err.empty() ? "" : ": ", answer.err));
  return fitness::read_audit(answer.host, answer.out);
}

}  // namespace

std::optional<Allocation> hosts_to_audit(const std::string& hostfile) {
  if (!hostfile.empty()) return find_allocation(hostfile);
  auto slurm = slurm_allocation(own_environment);
  // A task of srun with several tasks audits its own host, as each of its siblings does.
  if (!slurm || slurm->size > 1 || slurm->only_here()) return std::nullopt;
  return slurm;
}

std::vector<fitness::AuditedHost> audits_of(const Allocation& allocation, bool with_serials, double timeout_seconds) {
  std::vector<std::string> words = {"env", "--audit", "--json"};
  if (with_serials) words.emplace_back("--with-serials");
  std::vector<fitness::AuditedHost> audits;
  for (const HostAnswer& answer : ask_hosts(allocation, words, timeout_seconds)) audits.push_back(audited(answer));
  return audits;
}

ExitCode audit_hosts(const Allocation& allocation, const FleetOptions& options) {
  // The user's files first: a bad one is reported before any host is asked.
  std::optional<RunSet> runs;
  if (!options.runs.empty()) runs.emplace(read_runs(options.runs));
  fitness::AuditedFleet fleet;
  fleet.hosts = audits_of(allocation, options.with_serials, options.timeout_seconds);
  fleet.drift = fitness::drift_of(fleet.hosts);
  if (runs) report::add_effects(fleet.drift, *runs);
  if (options.json)
    fmt::print("{}", dump_document(json_of(fleet), 2));
  else
    print(report::audit_document(fleet));
  return fleet.code();
}

void add_identities(AuditedMachine& audit, const Root& root, const Machine& machine, bool with_serials) {
  const auto slots = slots_by_address(root);
  const auto serials = with_serials ? serials_of_gpus(root) : std::map<std::string, std::string>();
  for (const GpuPart& gpu : machine.gpus) {
    AuditedGpu& one = audit.gpus.emplace_back(AuditedGpu{gpu.pci, gpu.uuid, gpu.name, ""});
    if (const auto slot = slots.find(gpu.pci.substr(0, gpu.pci.rfind('.'))); slot != slots.end())
      one.slot = slot->second;
    if (const auto serial = serials.find(gpu.pci); serial != serials.end()) one.serial = serial->second;
  }
  if (with_serials) audit.serial = root.text("sys/class/dmi/id/product_serial");
}

}  // namespace assay::cli
