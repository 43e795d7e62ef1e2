#include "cli/audit_fleet.h"

#include "harness/hosts/ask_hosts.h"
#include "harness/hosts/slurm.h"
#include "harness/json/members.h"
#include "harness/machine/expectation.h"
#include "harness/machine/identities.h"
#include "harness/machine/problem_kinds.h"

#include <fmt/format.h>

#include <map>

namespace assay::cli {

namespace {

fitness::AuditedHost audited(const HostAnswer& answer) {
  using fitness::AuditState;
  if (!answer.exit_code) return fitness::no_audit(answer.host, AuditState::unreachable, answer.err);
  // 1: a fault was found; 3: a part of the expectation could not be judged.
  if (*answer.exit_code != 0 && *answer.exit_code != 1 && *answer.exit_code != 3)
    return fitness::no_audit(
        answer.host, AuditState::error,
        fmt::format("exit code {}{}{}", *answer.exit_code, answer.err.empty() ? "" : ": ", answer.err));
  return fitness::read_audit(answer.host, answer.out);
}

// In the order of the allocation. Hosts whose build does not know the verb are asked again, in the words of 1.0.
std::vector<fitness::AuditedHost> audits_of(const Allocation& allocation, const FleetOptions& options,
                                            const std::string& expectation) {
  const auto ask = [&](const Allocation& hosts, std::vector<std::string> words) {
    words.emplace_back("--json");
    if (options.with_serials) words.emplace_back("--with-serials");
    if (options.with_bmc && words.front() == "audit") words.emplace_back("--with-bmc-log");
    if (!expectation.empty() && words.front() == "audit")
      words.insert(words.end(), {"--expect", options.expect, "--expectation=" + expectation});
    return ask_hosts(hosts, words, options.timeout_seconds);
  };
  std::vector<HostAnswer> answers = ask(allocation, {"audit"});
  Allocation older = allocation;
  older.hosts.clear();
  std::vector<HostAnswer*> refused;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].exit_code != static_cast<int>(ExitCode::usage)) continue;
    refused.push_back(&answers[i]);
    older.hosts.push_back(allocation.hosts[i]);
  }
  if (!refused.empty()) {
    std::vector<HostAnswer> again = ask(older, {"env", "--audit"});
    for (std::size_t i = 0; i < refused.size(); ++i) *refused[i] = std::move(again[i]);
  }
  std::vector<fitness::AuditedHost> audits;
  for (const HostAnswer& answer : answers) {
    audits.push_back(audited(answer));
    if (expectation.empty() || audits.back().expected || audits.back().state != fitness::AuditState::ok) continue;
    audits.back().problems.push_back(finding_of(expected_unread, "its build does not know --expect"));
    audits.back().problems.back().host = answer.host;
  }
  return audits;
}

}  // namespace

std::optional<Allocation> hosts_to_audit(const std::string& hostfile) {
  if (!hostfile.empty()) return find_allocation(hostfile);
  auto slurm = slurm_allocation(own_environment);
  // A task of srun with several tasks audits its own host, as each of its siblings does.
  if (!slurm || slurm->size > 1 || slurm->only_here()) return std::nullopt;
  return slurm;
}

ExitCode audit_hosts(const Allocation& allocation, const FleetOptions& options, const Outputs& outputs) {
  // The user's files first: a bad one is reported before any host is asked.
  std::optional<RunSet> runs;
  if (!options.runs.empty()) runs.emplace(read_runs(options.runs));
  std::string expectation;
  if (!options.expect.empty()) {
    expectation = expectation_text(options.expect);
    (void)read_expectation(expectation, options.expect);
  }
  fitness::AuditedFleet fleet;
  fleet.hosts = audits_of(allocation, options, expectation);
  fleet.drift = fitness::drift_of(fleet.hosts);
  if (runs) report::add_effects(fleet.drift, *runs);
  outputs.write_json([&] { return dump_document(json_of(fleet), 2); });
  outputs.print(report::audit_document(fleet));
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
