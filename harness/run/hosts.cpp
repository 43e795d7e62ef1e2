// Supervisor, agent or bystander.
#include "harness/run/hosts.h"

#include "harness/core/error.h"
#include "harness/core/streams.h"
#include "harness/core/units.h"
#include "harness/hosts/agent.h"
#include "harness/json/members.h"
#include "harness/record/content_hash.h"
#include "harness/run/each_host_process.h"
#include "harness/run/meeting.h"

#include <fmt/format.h>

#include <cstdlib>

namespace assay {

namespace {

// Must be equal on hosts that were given a plan each. Empty for a resumed run, whose directory may be on one host only.
std::string fingerprint(const RunRequest& request, const Plan& plan) {
  if (request.resume) return {};
  return fmt::format("plan {} of {} cases ({:016x})", plan.name, plan.cases.size(), hash64(dump_line(plan.expanded())));
}

int serve(const RunRequest& request, const Allocation& allocation, const Plan& plan) {
  AgentRequest agent;
  agent.supervisor = allocation.supervisor;
  agent.token = allocation.token;
  agent.rank = allocation.rank;
  agent.size = allocation.size;
  agent.gpus = request.gpus.value_or(0);
  agent.plan = fingerprint(request, plan);
  agent.patience_seconds = launch_limit();
  return serve_as_agent(agent);
}

}  // namespace

std::variant<Hosts, ExitCode> take_part(const RunRequest& request, const Plan& plan) {
  Hosts hosts;
  hosts.allocation = request.allocation;
  Allocation& allocation = hosts.allocation;
  std::unique_ptr<ChannelServer> server;
  if (allocation.part == Part::unmet) server = meet_through_mpi(allocation);
  if (allocation.part == Part::bystander) {
    say("assay: rank {}: rank 0 runs the plan and starts its own workers\n", allocation.rank);
    return ExitCode::ok;
  }
  if (allocation.part == Part::agent && allocation.local_rank > 0) {
    say("assay: rank {}: another rank of this host is its agent\n", allocation.rank);
    return ExitCode::ok;
  }
  if (allocation.part == Part::agent) return static_cast<ExitCode>(serve(request, allocation, plan));
  if (allocation.only_here()) {
    use_named_gpus();
    hosts.infos = {probe_host(request.gpus.value_or(0))};
    return hosts;
  }
  AgentsOptions options;
  options.device = std::string(name_of(request.plan.device));
  options.plan = fingerprint(request, plan);
  options.start_limit_seconds = launch_limit();
  options.note = [](const std::string& line) { say("assay: {}\n", line); };
  options.server = std::move(server);
  hosts.agents = std::make_unique<Agents>(allocation, std::move(options));
  allocation = hosts.agents->allocation();
  hosts.infos = hosts.agents->hosts();
  for (const Finding& finding : find_differences(*hosts.agents)) say("assay: {}\n", finding.seen);
  return hosts;
}

std::vector<Finding> find_differences(const Agents& agents) {
  std::vector<Finding> findings;
  for (const std::string& seen : agents.clock_findings())
    findings.push_back({"clock", Severity::warning, seen, "logs and files of the hosts cannot be laid side by side",
                        "run a time service on every host: chronyc makestep"});
  if (const auto seen = agents.library_path_finding())
    findings.push_back({"library_path", Severity::warning, *seen, "ranks may load other versions of libraries",
                        "set it alike on every host, where remote shells read it"});
  return findings;
}

double launch_limit() {
  const char* text = std::getenv("ASSAY_LAUNCH_LIMIT");
  return text && *text ? parse_seconds(text) : 60;
}

Json hosts_json(const Hosts& hosts) {
  Json list = Json::array();
  for (std::size_t i = 0; i < hosts.infos.size(); ++i) {
    Json host = json_of(hosts.infos[i]);
    if (hosts.agents) {
      host["clock_ahead_seconds"] = 1e-9 * static_cast<double>(hosts.agents->clock_ahead_ns(static_cast<int>(i)));
      host["round_trip_seconds"] = 1e-9 * static_cast<double>(hosts.agents->round_trip_ns(static_cast<int>(i)));
    }
    list.push_back(std::move(host));
  }
  return list;
}

}  // namespace assay
