#include "harness/fitness/accept/accept.h"

#include "harness/archive/tar.h"
#include "harness/core/clock.h"
#include "harness/core/files.h"
#include "harness/core/streams.h"
#include "harness/fitness/accept/again.h"
#include "harness/fitness/accept/lists.h"
#include "harness/fitness/accept/majority.h"
#include "harness/fitness/accept/stages.h"
#include "harness/fitness/accept/suspicions.h"
#include "harness/fitness/sent.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace assay::accept {

namespace fs = std::filesystem;

namespace {

using fitness::AcceptedHost;

// Why a host has no result of a check, and whether the level requires one.
void explain_not_run(const Request& request, std::vector<AcceptedHost>& hosts) {
  const auto left =
      std::ranges::count_if(hosts, [](const AcceptedHost& host) { return host.state() != Fitness::fail; });
  for (AcceptedHost& host : hosts) {
    std::string failed;
    for (const std::string_view name : fitness::accept_checks) {
      fitness::HostCheck& check = host.checks[std::string(name)];
      check.required = request.level.required.contains(std::string(name));
      if (check.state == Fitness::fail && failed.empty()) failed = name;
      if (check.state != Fitness::unknown || !check.evidence.empty()) continue;
      const std::string why = request.why_not_run(name, request.state.hosts.size());
      const bool few = (name == "pairs" || name == "collectives") && left < 2;
      check.evidence.push_back(!why.empty()      ? why
                               : !failed.empty() ? "it failed in " + failed
                               : few             ? "fewer than two hosts are left"
                                                 : "not reached");
    }
  }
}

// The audit and the runs in which the host took part, with what it failed in.
fitness::EvidenceInput evidence_of(const AcceptedHost& host, const State& state, const fitness::AuditedFleet& audit,
                                   const fs::path& dir) {
  fitness::EvidenceInput input;
  input.host = host.host;
  input.with_serials = state.with_serials;
  input.environment = nullptr;
  if (const auto answer = std::ranges::find(audit.hosts, host.host, &fitness::AuditedHost::host);
      answer != audit.hosts.end())
    input.audit = *answer;
  const auto add_runs = [&](const State& of, const fs::path& folder) {
    for (const auto& [stage, attempts] : of.stages)
      for (const Attempt& one : attempts) {
        std::error_code none;
        const bool took_part = std::ranges::find(one.hosts, host.host) != one.hosts.end();
        if (took_part && fs::exists(folder / one.dir / "records.jsonl", none)) input.runs.push_back(folder / one.dir);
      }
  };
  add_runs(state, dir);
  for (const Again& one : state.again)
    if (one.host == host.host) add_runs(read_state(dir / one.dir), dir / one.dir);
  for (const auto& [name, check] : host.checks)
    if (check.state == Fitness::fail) input.missed.insert(input.missed.end(), check.missed.begin(), check.missed.end());
  return input;
}

// What is to be sent for each host that failed, as evidence/HOST.tar; a host without it is noted.
void collect_evidence(fitness::Acceptance& table, const State& state, const fitness::AuditedFleet& audit,
                      const fs::path& dir) {
  // One host's GPUs may all be missing.
  const bool has_gpus = std::ranges::any_of(table.hosts, [](const AcceptedHost& one) { return !one.gpus.empty(); });
  for (AcceptedHost& host : table.hosts) {
    if (host.state() != Fitness::fail) continue;
    fitness::EvidenceInput input = evidence_of(host, state, audit, dir);
    host.commands = input.commands = fitness::vendor_commands(fitness::vendor_parts(host, has_gpus));
    try {
      std::error_code none;
      fs::create_directories(dir / "evidence", none);
      const std::string file = fmt::format("evidence/{}.tar", host.host);
      const std::string bytes = tar_bytes(fitness::evidence_members(input));
      replace_file(dir / file, bytes);
      say("assay: {}: {}\n", (dir / file).string(), fitness::sent_text(bytes));
      host.evidence_file = file;
    } catch (const Error& error) {
      table.notes.push_back(fmt::format("no evidence of {}: {}", host.host, error.what()));
    }
  }
}

bool judged_speed(const std::vector<AcceptedHost>& hosts) {
  return std::ranges::any_of(hosts, [](const AcceptedHost& host) {
    return std::ranges::any_of(host.checks, [](const auto& one) { return one.second.floor.has_value(); });
  });
}

}  // namespace

ExitCode Result::code() const {
  if (!table.finished) return ExitCode::no_data;
  return worst(exit_code(table.fitness()), broke ? ExitCode::broken : ExitCode::ok);
}

void begin(const fs::path& dir, const State& state) {
  std::error_code failed;
  // One that was killed at its very start has left a temporary file and nothing to resume.
  for (const fs::directory_entry& entry : fs::directory_iterator(dir, failed))
    if (!is_temporary(entry.path().filename()))
      throw UsageError(
          fmt::format("--out {}: exists and is not empty; --resume continues an acceptance", dir.string()));
  if (!failed || failed == std::errc::no_such_file_or_directory) fs::create_directories(dir, failed);
  if (failed) throw UsageError(fmt::format("--out {}: {}", dir.string(), failed.message()));
  write_state(dir, state);
}

Result run(Request request, Trials& trials, const fs::path& dir, const fs::path& past) {
  const Clock::time_point began = trials.now();
  remove_lists(dir);
  Stages stages(request, trials, dir);
  Result result;
  fitness::Acceptance& table = result.table;
  table.finished = stages.run();
  for (AcceptedHost& host : stages.hosts()) fitness::escalate(host);
  fitness::AuditedFleet audit = stages.audit();
  AgainResult again;
  if (table.finished) again = run_again(request, trials, dir, stages.hosts(), audit);
  table.finished = table.finished && again.finished;
  request.state.seconds += std::chrono::duration<double>(trials.now() - began).count();
  write_state(dir, request.state);
  std::vector<std::string> notes = std::move(again.notes);
  if (table.finished && !past.empty() && !stages.is_drill())
    escalate_over_time(stages.hosts(), request.state, past, notes);
  explain_not_run(request, stages.hosts());
  table.level = request.level.name;
  table.started = request.state.started;
  if (request.user) table.floors = request.user->name;
  table.seconds = request.state.seconds;
  table.hosts = stages.hosts();
  table.notes = stages.notes();
  table.notes.insert(table.notes.end(), notes.begin(), notes.end());
  table.compared = stages.compared();
  table.figures = stages.figures();
  table.switches = stages.switches();
  table.links = stages.links();
  table.rails = stages.rails();
  if (table.finished) collect_evidence(table, request.state, audit, dir);
  if (!judged_speed(table.hosts))
    table.notes.emplace_back("nothing judged how fast, only whether results are right: --floors FILE, or three hosts");
  if (table.finished) table.not_measured = stages.unmeasured();
  if (table.finished) write_majority(table, audit, request.state, dir);
  if (table.finished) write_lists(table, dir);
  result.broke = stages.broke() || again.broke;
  return result;
}

}  // namespace assay::accept
