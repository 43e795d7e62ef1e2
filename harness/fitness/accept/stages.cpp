#include "harness/fitness/accept/stages.h"

#include "harness/core/files.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/fitness/cluster/pairs.h"
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

constexpr int max_attempts = 4;  // of a stage of all hosts, each without the hosts that the last one lost
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
  for (const auto& [name, check] : more) {
    for (const std::string& line : check.evidence) checks[name].note(check.state, line);
    for (const fitness::FailedPart& one : check.culprits) checks[name].blame(one.part, one.device);
  }
}

}  // namespace

std::optional<fitness::AuditedFleet> audit_hosts(const Request& request, Trials& trials) {
  say("assay: audit of {}\n", plural(request.state.hosts.size(), "host"));
  Trial trial{.command = {"audit", "--json", "--with-bmc-log", "--hosts", joined(request.state.hosts, ",")},
              .environment = variables_of_launcher(),
              .grace_seconds = 60,
              .on_errors = say_text};
  if (!request.state.hostfile.empty())
    trial.command.insert(trial.command.end(), {"--hostfile", request.state.hostfile});
  if (request.state.with_serials) trial.command.emplace_back("--with-serials");
  if (!request.state.expect.empty()) trial.command.insert(trial.command.end(), {"--expect", request.state.expect});
  const TrialResult result = std::move(trials.run({trial}).front());
  if (trials.interrupted()) return std::nullopt;
  fitness::AuditedFleet found;
  try {
    found = read_text<fitness::AuditedFleet>(result.output);
  } catch (const Error&) {
    found.error = one_line(last_lines(result.errors, 1), 400);
  }
  return found;
}

void keep_audit(Request& request, const fitness::AuditedFleet& audit, const fs::path& dir) {
  replace_file(dir / "audit.json", dump_document(json_of(audit)));
  request.state.audited = true;
  write_state(dir, request.state);
}

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
  const State& state = request_.state;
  if (!state.no_leaves.empty())
    all.push_back(
        fmt::format("leaf switches are not known (scontrol show topology: {}), so slow ones would be taken for "
                    "slow ports of their hosts",
                    state.no_leaves));
  if (const std::size_t known = state.leaves.size(); known > 0 && known < state.hosts.size()) {
    std::vector<std::string> without = state.hosts;
    std::erase_if(without, [&](const std::string& host) { return state.leaves.contains(host); });
    all.push_back(fmt::format("the leaf switch of {} is not known: {}", plural(without.size(), "host"),
                              one_line(joined(without), 200)));
  }
  return all;
}

std::vector<fitness::WorldFigure> Stages::figures() const {
  std::vector<fitness::WorldFigure> all;
  for (const std::string_view stage : run_stages)
    if (const auto found = figures_.find(stage); found != figures_.end())
      for (fitness::WorldFigure one : found->second) {
        one.check = stage;
        all.push_back(std::move(one));
      }
  return all;
}

std::vector<fitness::SlowSwitch> Stages::switches() const {
  std::vector<fitness::SlowSwitch> all;
  for (const auto& [stage, found] : switches_)
    for (const fitness::SlowSwitch& one : found) fitness::add_worst(all, one);
  return all;
}

bool Stages::make_audit() {
  const auto found = audit_hosts(request_, trials_);
  if (!found) return false;
  keep_audit(request_, *found, dir_);
  return true;
}

void Stages::judge_audit() {
  const fs::path file = dir_ / "audit.json";
  const std::string text = read_whole(file, max_audit_bytes);
  try {
    audit_ = read_text<fitness::AuditedFleet>(text);
  } catch (const Error& error) {
    throw UsageError(fmt::format("{}: {}", file.string(), error.what()));
  }
  port_rates_ = fitness::port_rates(audit_);
  if (!audit_.hosts.empty()) {
    fitness::judge_audit(audit_, hosts_);
    for (const std::string& name : hosts_of_other_hardware(request_, audit_))
      std::ranges::find(hosts_, name, &AcceptedHost::host)
          ->checks["audit"]
          .note(Fitness::unsure, fmt::format("floors {} are not for this hardware", request_.user->name));
    return;
  }
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
  return {request_.user ? &*request_.user : nullptr,
          request_.fleet ? &*request_.fleet : nullptr,
          request_.level.pair_share,
          &request_.state.leaves,
          &port_rates_,
          request_.families,
          &unmeasured_,
          &compared_,
          &unjudged_};
}

std::optional<RunData> Stages::run_of(const Attempt& attempt, HostChecks& checks) {
  for (const auto& [name, why] : attempt.lost)
    checks[name].note(Fitness::fail, "lost: " + why), checks[name].blame("host");
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
    std::vector<RunData> runs;
    const auto bad = fitness::gpus_that_held_up(*run, took_part);
    runs.push_back(std::move(*run));
    std::size_t number = 1;  // of attempts
    for (const auto& [name, held_up] : bad) {
      const Attempt* others = attempts_.make(stage, number++, {name}, pattern_of(held_up.keys), held_up.ranks);
      if (!others) return false;
      if (auto rest = run_of(*others, unfinished)) runs.push_back(std::move(*rest));
    }
    checks = fitness::judge_each_host(runs, took_part, floors());
    std::vector<std::string> slow;
    std::set<std::string> keys;
    for (const auto& [name, check] : checks)
      if (!check.repeat.empty() && !unfinished.contains(name))
        slow.push_back(name), keys.insert(check.repeat.begin(), check.repeat.end());
    if (!slow.empty()) {
      const Attempt* second = attempts_.make(stage, number, slow, pattern_of(keys));
      if (!second) return false;
      if (auto again = run_of(*second, unfinished)) {
        runs.push_back(std::move(*again));
        checks = fitness::judge_each_host(std::move(runs), took_part, floors());
      }
    }
  }
  if (!unjudged_.empty()) skips_[stage] += (skips_[stage].empty() ? "" : "; ") + unjudged_;
  add_to(checks, unfinished);
  keep(stage, checks);
  return true;
}

bool Stages::run_together(std::string_view stage, std::vector<std::string> hosts) {
  std::size_t number = 0;  // of attempts, among them those of slow pairs only
  for (int tries = 0; tries < max_attempts; ++tries) {
    const Attempt* one = attempts_.make(stage, number++, hosts);
    if (!one) return false;
    const std::vector<std::string> took_part = one->hosts;
    fitness::WorldChecks world;
    HostChecks unfinished;
    auto run = run_of(*one, unfinished);
    if (run) skips_[stage] = fitness::skips_text(*run);
    bool lost = !one->lost.empty();
    if (run && !lost) world = fitness::judge_world(*run, took_part, floors());
    if (!world.slow.empty()) {
      const Attempt* again =
          attempts_.make(stage, number++, fitness::with_partners(world.slow, took_part, world.hosts_again),
                         pattern_of(world.slow_keys));
      if (!again) return false;
      const auto measured = run_of(*again, unfinished);
      lost = !again->lost.empty();
      if (measured) fitness::keep_better_pairs(*run, *measured, world.slow);
      world = lost ? fitness::WorldChecks() : fitness::judge_world(std::move(*run), took_part, floors());
    }
    add_to(world.checks, unfinished);
    figures_[stage] = std::move(world.figures);
    if (!world.links.empty()) links_ = std::move(world.links), rails_ = std::move(world.rails);
    switches_[stage] = std::move(world.switches);
    if (!world.note.empty()) skips_[stage] += (skips_[stage].empty() ? "" : "; ") + world.note;
    world.repeat = world.repeat || lost;
    keep(stage, world.checks);
    hosts = remaining();
    if (!world.repeat || hosts.size() == took_part.size() || hosts.empty()) break;
    if (!request_.why_not_run(stage, hosts.size()).empty()) break;
  }
  return true;
}

}  // namespace assay::accept
