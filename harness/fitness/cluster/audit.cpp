// What an audit says about each host of an acceptance.
#include "harness/fitness/cluster/cluster.h"

#include "harness/core/text.h"
#include "harness/core/utc.h"
#include "harness/core/words.h"
#include "harness/machine/problem_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace assay::fitness {

namespace {

// Facts in which machines that are bought as equal must be equal: what runs on them and what is burnt into them. Others
// (settings, libraries of one user) may have a reason and are only mentioned.
constexpr auto equal_facts =
    std::to_array<std::string_view>({"driver", "driver modules", "cuda", "kernel", "bios", "bios version", "board",
                                     "cpu", "cpus", "nccl", "nics", "nics for gpus", "smt"});
// Lists all facts of these kinds: "gpus NVIDIA H100 80GB HBM3", "nic firmware mlx5_0".
constexpr auto equal_kinds =
    std::to_array<std::string_view>({"gpus ", "nic firmware ", "vbios ", "nvlinks ", "firmware "});

bool must_be_equal(std::string_view fact) {
  return std::ranges::find(equal_facts, fact) != equal_facts.end() ||
         std::ranges::any_of(equal_kinds, [&](std::string_view kind) { return fact.starts_with(kind); });
}

// "xid-fatal of 0000:1b:00.0: XID 79 at ..., 2 times (the GPU has fallen off the bus)".
std::string problem_text(const Finding& problem) {
  return fmt::format("{}{}: {}{}", problem.id, problem.device.empty() ? "" : " of " + problem.device, problem.seen,
                     problem.meaning.empty() ? "" : " (" + problem.meaning + ")");
}

std::string xid_text(const KernelEvent& event) {
  const auto time = event.unix_seconds ? " at " + utc_text(static_cast<std::time_t>(*event.unix_seconds)) : "";
  return fmt::format("XID {}{}{}{}", event.code, event.device.empty() ? "" : " of " + event.device, time,
                     event.count > 1 ? fmt::format(", {} times", event.count) : "");
}

// A cable is named where the link itself was up.
void blame(HostCheck& check, const Finding& problem) {
  const ProblemKind* const kind = find_kind(problem.id);
  if (!kind || !kind->part) return;
  const bool cable = problem.id == "nic-cable" || problem.id == "nic-errors" || problem.id == "link-flaps";
  check.blame(*kind->part != VendorPart::network ? assay::word_of(*kind->part)
              : cable                            ? "cable"
                                                 : "port",
              problem.device);
}

void judge_host(const AuditedHost& from, AcceptedHost& host) {
  HostCheck& check = host.checks["audit"];
  if (from.state != AuditState::ok)
    check.note(Fitness::fail, fmt::format("{}: {}", assay::word_of(from.state), from.error)), check.blame("host");
  else
    check.note(Fitness::pass, "");
  for (const Finding& problem : from.problems) {
    if (problem.id == expected_unread) {
      check.note(Fitness::unsure, problem_text(problem));
      continue;
    }
    if (problem.severity == Severity::fault) {
      check.note(Fitness::fail, problem_text(problem));
      blame(check, problem);
      host.problems.push_back(problem.id);
    }
    if (problem.severity == Severity::warning) check.note(Fitness::pass, "warning: " + problem_text(problem));
  }
  host.gpus = from.gpus;
  for (const KernelEvent& event : from.events)
    if (event.kind == "xid") host.xids.push_back(xid_text(event));
}

// A host with fewer devices than more than half of the hosts have.
void compare_gpus(std::vector<AcceptedHost>& hosts) {
  std::map<std::size_t, std::size_t> counts;
  for (AcceptedHost& host : hosts)
    if (host.checks["audit"].state != Fitness::fail || !host.gpus.empty()) ++counts[host.gpus.size()];
  for (const auto& [gpus, count] : counts)
    if (2 * count > hosts.size())
      for (AcceptedHost& host : hosts)
        if (host.gpus.size() < gpus && host.checks["audit"].state != Fitness::fail) {
          host.checks["audit"].note(Fitness::fail, fmt::format("{} GPUs, {} of {} hosts have {}", host.gpus.size(),
                                                               count, hosts.size(), gpus));
          host.checks["audit"].blame("gpu");
        }
}

void judge_drift(const Drift& drift, std::vector<AcceptedHost>& hosts) {
  const bool majority = 2 * drift.count > hosts.size();
  for (const Drift::Differing& one : drift.hosts) {
    const auto host = std::ranges::find(hosts, one.host, &AcceptedHost::host);
    if (host == hosts.end()) continue;
    std::string line =
        fmt::format("{} is {}; {} of {} hosts have {}", drift.fact, one.value ? one_line(*one.value) : "absent",
                    drift.count, hosts.size(), drift.majority.value_or(""));
    if (!must_be_equal(drift.fact))
      host->checks["audit"].note(Fitness::pass, "differs: " + line);
    else
      host->checks["audit"].note(majority ? Fitness::fail : Fitness::unsure, line);
    if (drift.fact == "nics" || drift.fact == "nics for gpus") host->checks["audit"].blame("port");
  }
}

}  // namespace

void judge_audit(const AuditedFleet& audit, std::vector<AcceptedHost>& hosts) {
  for (AcceptedHost& host : hosts) {
    host.gpus.clear(), host.problems.clear(), host.xids.clear();
    host.checks["audit"] = {};
    const auto answer = std::ranges::find(audit.hosts, host.host, &AuditedHost::host);
    if (answer != audit.hosts.end())
      judge_host(*answer, host);
    else
      host.checks["audit"].note(Fitness::fail, "the audit has no answer of this host");
  }
  compare_gpus(hosts);
  for (const Drift& one : audit.drift) judge_drift(one, hosts);
}

}  // namespace assay::fitness
