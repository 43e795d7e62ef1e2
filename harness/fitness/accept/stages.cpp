#include "harness/fitness/accept/stages.h"

#include "harness/core/files.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/json/members.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

namespace assay::accept {

namespace fs = std::filesystem;

namespace {

using fitness::AcceptedHost;
using fitness::HostCheck;
using fitness::HostChecks;

constexpr std::size_t max_attempts = 4;  // of a stage of all hosts, each without the hosts that the last one lost
constexpr std::uintmax_t max_audit_bytes = std::uintmax_t{1} << 30;

// A regular expression of exactly these keys.
std::string pattern_of(const std::set<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) {
    text += text.empty() ? "^(" : "|";
    for (const char c : key) {
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '=') text += '\\';
      text += c;
    }
  }
  return text + ")$";
}

void add_to(HostChecks& checks, const HostChecks& more) {
  for (const auto& [name, check] : more)
    for (const std::string& line : check.evidence) checks[name].note(check.state, line);
}

}  // namespace

Stages::Stages(Request& request, Trials& trials, const fs::path& dir)
    : request_(request), trials_(trials), dir_(dir), attempts_(request, trials, dir) {
  for (const std::string& name : request_.state.hosts) hosts_.push_back({.host = name});
  if (request_.user) unmeasured_.expect(*request_.user, false);
  if (request_.fleet) unmeasured_.expect(*request_.fleet, true);
}

bool Stages::run() {
  if (!request_.state.audited && !make_audit()) return false;
  judge_audit();
  for (const std::string_view stage : run_stages) {
    const std::vector<std::string> hosts = remaining();
    if (hosts.empty() || !request_.why_not_run(stage, hosts.size()).empty()) continue;
    if (!(runs_alone(stage) ? run_on_each(stage, hosts) : run_together(stage, hosts))) return false;
  }
  return true;
}

std::vector<std::string> Stages::notes() const {
  std::vector<std::string> all = drills_;
  for (const auto& [stage, text] : skips_)
    if (!text.empty()) all.push_back(fmt::format("{}: {}", stage, text));
  return all;
}

bool Stages::make_audit() {
  say("assay: audit of {}\n", plural(request_.state.hosts.size(), "host"));
  Trial trial{.command = {"audit", "--json"},
              .environment = variables_of_launcher(),
              .grace_seconds = 60,
              .on_errors = say_text};
  if (request_.allocation.source != LaunchSource::slurm) {
    std::string hostfile = request_.state.hostfile;
    if (hostfile.empty()) {
      hostfile = (dir_ / "hosts.txt").string();
      replace_file(hostfile, fmt::format("{}\n", fmt::join(request_.state.hosts, "\n")));
    }
    trial.command.insert(trial.command.end(), {"--hostfile", hostfile});
  }
  if (request_.state.with_serials) trial.command.emplace_back("--with-serials");
  if (!request_.state.expect.empty()) trial.command.insert(trial.command.end(), {"--expect", request_.state.expect});
  const TrialResult result = std::move(trials_.run({trial}).front());
  if (trials_.interrupted()) return false;
  fitness::AuditedFleet found;
  try {
    found = read_text<fitness::AuditedFleet>(result.output);
  } catch (const Error&) {
    found.error = one_line(last_lines(result.errors, 1), 400);
  }
  replace_file(dir_ / "audit.json", dump_document(json_of(found)));
  request_.state.audited = true;
  write_state(dir_, request_.state);
  return true;
}

void Stages::judge_audit() {
  audit_ = read_text<fitness::AuditedFleet>(read_whole(dir_ / "audit.json", max_audit_bytes));
  if (!audit_.hosts.empty()) return fitness::judge_audit(audit_, hosts_);
  broke_ = true;
  for (AcceptedHost& host : hosts_)
    host.checks["audit"].note(Fitness::unsure, "the audit gave no answer: " + audit_.error);
}

std::vector<std::string> Stages::remaining() const {
  std::vector<std::string> names;
  for (const AcceptedHost& host : hosts_)
    if (host.state() != Fitness::fail) names.push_back(host.host);
  return names;
}

fitness::StageFloors Stages::floors() {
  return {request_.user ? &*request_.user : nullptr, request_.fleet ? &*request_.fleet : nullptr,
          request_.level.pair_share, request_.families, &unmeasured_};
}

std::optional<RunData> Stages::run_of(const Attempt& attempt, HostChecks& checks) {
  for (const auto& [name, why] : attempt.lost) checks[name].note(Fitness::fail, "lost: " + why);
  if (!attempt.complete && attempt.lost.empty()) {
    broke_ = true;
    for (const std::string& name : attempt.hosts)
      checks[name].note(Fitness::unsure, "the run is not complete: " + attempt.error);
  }
  std::optional<RunData> run = attempts_.take_run(attempt);
  if (!run) return run;
  for (const std::string& note : fitness::why_drill({*run}))
    if (std::ranges::find(drills_, note) == drills_.end()) drills_.push_back(note);
  return run;
}

void Stages::keep(std::string_view stage, const HostChecks& checks) {
  for (const auto& [name, check] : checks)
    std::ranges::find(hosts_, name, &AcceptedHost::host)->checks.insert_or_assign(std::string(stage), check);
}

bool Stages::run_on_each(std::string_view stage, const std::vector<std::string>& hosts) {
  const Attempt* first = attempts_.make(stage, 0, hosts);
  if (!first) return false;
  const std::vector<std::string> took_part = first->hosts;
  HostChecks unfinished, checks;
  if (auto run = run_of(*first, unfinished)) {
    skips_[stage] = fitness::skips_text(*run);
    checks = fitness::judge_each_host({*run}, took_part, floors());
    std::vector<std::string> slow;
    std::set<std::string> keys;
    for (const auto& [name, check] : checks)
      if (!check.repeat.empty() && !unfinished.contains(name))
        slow.push_back(name), keys.insert(check.repeat.begin(), check.repeat.end());
    if (!slow.empty()) {
      const Attempt* second = attempts_.make(stage, 1, slow, pattern_of(keys));
      if (!second) return false;
      if (auto again = run_of(*second, unfinished))
        checks = fitness::judge_each_host({std::move(*run), std::move(*again)}, took_part, floors());
    }
  }
  add_to(checks, unfinished);
  keep(stage, checks);
  return true;
}

bool Stages::run_together(std::string_view stage, std::vector<std::string> hosts) {
  for (std::size_t number = 0; number < max_attempts; ++number) {
    const Attempt* one = attempts_.make(stage, number, hosts);
    if (!one) return false;
    fitness::WorldChecks world;
    HostChecks unfinished;
    auto run = run_of(*one, unfinished);
    if (run) skips_[stage] = fitness::skips_text(*run);
    if (run && one->lost.empty()) world = fitness::judge_world(std::move(*run), one->hosts, floors());
    add_to(world.checks, unfinished);
    world.repeat = world.repeat || !one->lost.empty();
    keep(stage, world.checks);
    hosts = remaining();
    if (!world.repeat || hosts.size() == one->hosts.size() || hosts.empty()) break;
    if (!request_.why_not_run(stage, hosts.size()).empty()) break;
  }
  return true;
}

}  // namespace assay::accept
