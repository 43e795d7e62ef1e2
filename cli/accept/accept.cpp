// assay accept: a cluster from audit to training, in stages that are runs of this program, and one table at the end.
#include "reports/acceptance/accept.h"
#include "cli/accept/request.h"
#include "cli/catalogue.h"
#include "cli/command.h"
#include "cli/options.h"
#include "harness/archive/tar.h"
#include "harness/core/clock.h"
#include "harness/core/files.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/json/members.h"
#include "harness/record/run_lock.h"
#include "harness/run/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <utility>

namespace assay::cli {

namespace {

namespace fs = std::filesystem;
using fitness::AcceptedHost;
using fitness::CheckState;

constexpr std::size_t max_attempts = 4;  // of a stage of all hosts, each without the hosts that the last one lost
constexpr std::uintmax_t max_audit_bytes = std::uintmax_t{1} << 30;

class Acceptor {
 public:
  Acceptor(const AcceptOptions& options, AcceptRequest request) : options_(options), request_(std::move(request)) {}

  ExitCode run() {
    open();
    say_text(request_.schedule());
    RunLock lock(dir_);
    Children children("the stage under way", 5, [&lock] { lock.refresh(); });
    children_ = &children;
    began_ = Clock::now();
    for (const std::string& name : request_.state.hosts) hosts_.push_back({.host = name});
    if (request_.user) unmeasured_.expect(*request_.user, false);
    if (request_.fleet) unmeasured_.expect(*request_.fleet, true);
    const bool complete = audit() && run_stages_in_order();
    request_.state.seconds += seconds_since(began_);
    write_state(dir_, request_.state);
    return publish(complete);
  }

 private:
  void open() {
    dir_ = !options_.resume.empty() ? fs::path(options_.resume)
           : !options_.out.empty()  ? fs::path(options_.out)
                                    : default_out("accept-");
    if (!options_.resume.empty()) return;
    std::error_code failed;
    if (fs::exists(dir_, failed) && !fs::is_empty(dir_, failed))
      throw UsageError(
          fmt::format("--out {}: exists and is not empty; --resume continues an acceptance", dir_.string()));
    fs::create_directories(dir_, failed);
    if (failed) throw UsageError(fmt::format("--out {}: {}", dir_.string(), failed.message()));
    write_state(dir_, request_.state);
  }

  // ---- stages

  void say(const std::string& line) const { assay::say("assay: {}\n", line); }

  bool audit() {
    const fs::path file = dir_ / "audit.json";
    if (!request_.state.audited) {
      say(fmt::format("audit of {}", hosts_text(request_.state.hosts.size())));
      std::vector<std::string> words = {"audit", "--json"};
      if (request_.allocation.source != LaunchSource::slurm) {
        std::string hostfile = request_.state.hostfile;
        if (hostfile.empty()) {
          hostfile = (dir_ / "hosts.txt").string();
          replace_file(hostfile, fmt::format("{}\n", fmt::join(request_.state.hosts, "\n")));
        }
        words.insert(words.end(), {"--hostfile", hostfile});
      }
      if (request_.state.with_serials) words.emplace_back("--with-serials");
      const FinishedProcess end = run_self(*children_, words);
      if (children_->interrupted()) return false;
      fitness::AuditedFleet found;
      try {
        found = read_text<fitness::AuditedFleet>(end.output);
      } catch (const Error&) {
        found.error = one_line(last_lines(end.errors, 1), 400);
      }
      replace_file(file, dump_document(json_of(found)));
      request_.state.audited = true;
      write_state(dir_, request_.state);
    }
    audit_ = read_text<fitness::AuditedFleet>(read_whole(file, max_audit_bytes));
    if (!audit_.hosts.empty()) {
      fitness::judge_audit(audit_, hosts_);
      return true;
    }
    broke_ = true;
    for (AcceptedHost& host : hosts_)
      host.checks["audit"].note(CheckState::inconclusive, "the audit gave no answer: " + audit_.error);
    return true;
  }

  bool run_stages_in_order() {
    for (const std::string_view stage : run_stages) {
      std::vector<std::string> hosts = remaining();
      if (hosts.empty() || !request_.why_not_run(stage, hosts.size()).empty()) continue;
      if (!(runs_alone(stage) ? run_on_each(stage, hosts) : run_together(stage, hosts))) return false;
    }
    return true;
  }

  std::vector<std::string> remaining() const {
    std::vector<std::string> names;
    for (const AcceptedHost& host : hosts_)
      if (host.state() != CheckState::fail) names.push_back(host.host);
    return names;
  }

  AcceptedHost& host(const std::string& name) {
    return *std::find_if(hosts_.begin(), hosts_.end(), [&](const AcceptedHost& one) { return one.host == name; });
  }

  fitness::StageFloors floors() {
    return {request_.user ? &*request_.user : nullptr, request_.fleet ? &*request_.fleet : nullptr,
            request_.level.pair_share, families_, &unmeasured_};
  }

  // The attempt of that number, run or finished if it is not; false if a signal ended it.
  bool attempt(std::string_view stage, std::size_t number, const std::vector<std::string>& hosts,
               const std::vector<std::string>& more = {}) {
    std::vector<Attempt>& attempts = request_.state.stages[std::string(stage)];
    if (attempts.size() <= number) {
      attempts.resize(number + 1);
      attempts[number].dir = number == 0 ? std::string(stage) : fmt::format("{}-{}", stage, number + 1);
      attempts[number].hosts = hosts;
      write_state(dir_, request_.state);
    }
    Attempt& one = attempts[number];
    while (!one.done) {
      std::vector<std::string> left = one.hosts;
      std::erase_if(left, [&](const std::string& name) { return one.lost.contains(name); });
      say(fmt::format("{}: {}{}", one.dir, hosts_text(left.size()),
                      left.size() < request_.state.hosts.size()
                          ? fmt::format(" ({})", one_line(fmt::format("{}", fmt::join(left, ", "))))
                          : ""));
      const FinishedProcess end =
          run_self(*children_, run_words(stage, dir_ / one.dir, left, more), dir_ / (one.dir + ".log"));
      if (children_->interrupted()) return false;
      one.complete = is_complete(dir_ / one.dir);
      one.error = one.complete ? "" : one_line(last_lines(end.errors, 1), 1000);
      const std::vector<std::string> named =
          one.complete ? std::vector<std::string>() : fitness::hosts_named(one.error, left);
      const bool others = named.size() < left.size();
      if (others)
        for (const std::string& name : named) one.lost[name] = one.error;
      // Each host by itself needs no other; a world without one of its hosts is another.
      one.done = named.empty() || !others || !runs_alone(stage);
      write_state(dir_, request_.state);
    }
    return true;
  }

  std::vector<std::string> run_words(std::string_view stage, const fs::path& dir, const std::vector<std::string>& hosts,
                                     const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"run"};
    std::error_code none;
    if (fs::exists(dir / "run.json", none)) {
      words.insert(words.end(), {"--resume", dir.string()});
    } else {
      const auto& plans = request_.level.plans.at(std::string(stage));
      words.insert(words.end(), plans.begin(), plans.end());
      words.insert(words.end(), {"--out", dir.string(), "--device", request_.state.device});
      if (const auto ranks = request_.ranks_of(stage, hosts.size()); !ranks.empty())
        words.insert(words.end(), {"--ranks", std::to_string(ranks.front())});
      if (runs_alone(stage)) words.emplace_back("--each-host");
      words.insert(words.end(), more.begin(), more.end());
    }
    if (!request_.state.hostfile.empty()) words.insert(words.end(), {"--hostfile", request_.state.hostfile});
    if (!request_.allocation.only_here()) words.insert(words.end(), {"--hosts", hosts_with_slots(hosts)});
    return words;
  }

  static bool is_complete(const fs::path& dir) {
    std::error_code none;
    return fs::exists(dir / "run.json", none) && !text_member(parse_untrusted(read_run_json(dir)), "/finished").empty();
  }

  // One rank per CPU host, or one per GPU: hosts with more slots would take the ranks of others.
  std::string hosts_with_slots(const std::vector<std::string>& hosts) const {
    std::string text;
    for (const std::string& name : hosts)
      text += fmt::format("{}{}:{}", text.empty() ? "" : ",", name, request_.ranks_per_host);
    return text;
  }

  // Absent if the attempt left no run. What kept it from being complete is noted for its hosts.
  std::optional<RunData> run_of(const Attempt& one, fitness::HostChecks& checks) {
    for (const auto& [name, why] : one.lost) checks[name].note(CheckState::fail, "lost: " + why);
    if (!one.complete && one.lost.empty()) {
      broke_ = true;
      for (const std::string& name : one.hosts)
        checks[name].note(CheckState::inconclusive, "the run is not complete: " + one.error);
    }
    std::error_code none;
    if (!fs::exists(dir_ / one.dir / "run.json", none)) return std::nullopt;
    RunData run = std::move(assay::read_runs({dir_ / one.dir}).front());
    for (const std::string& note : fitness::why_drill({run}))
      if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
    return run;
  }

  static void add_to(fitness::HostChecks& checks, const fitness::HostChecks& more) {
    for (const auto& [name, check] : more) {
      fitness::HostCheck& to = checks[name];
      for (const std::string& line : check.evidence) to.note(check.state, line);
    }
  }

  void keep(std::string_view stage, const fitness::HostChecks& checks) {
    for (const auto& [name, check] : checks) host(name).checks.insert_or_assign(std::string(stage), check);
  }

  bool run_on_each(std::string_view stage, std::vector<std::string> hosts) {
    if (!attempt(stage, 0, hosts)) return false;
    const Attempt first = request_.state.stages[std::string(stage)].front();
    fitness::HostChecks unfinished, checks;
    auto run = run_of(first, unfinished);
    if (run) {
      skips_[stage] = fitness::skips_text(*run);
      checks = fitness::judge_each_host({*run}, first.hosts, floors());
      std::vector<std::string> slow;
      std::set<std::string> keys;
      for (const auto& [name, check] : checks)
        if (!check.repeat.empty() && !unfinished.contains(name))
          slow.push_back(name), keys.insert(check.repeat.begin(), check.repeat.end());
      if (!slow.empty()) {
        if (!attempt(stage, 1, slow, {"--filter", pattern_of(keys)})) return false;
        if (auto again = run_of(request_.state.stages[std::string(stage)][1], unfinished))
          checks = fitness::judge_each_host({std::move(*run), std::move(*again)}, first.hosts, floors());
      }
    }
    add_to(checks, unfinished);
    keep(stage, checks);
    return true;
  }

  // A regular expression of exactly these keys.
  static std::string pattern_of(const std::set<std::string>& keys) {
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

  bool run_together(std::string_view stage, std::vector<std::string> hosts) {
    for (std::size_t number = 0; number < max_attempts; ++number) {
      if (!attempt(stage, number, hosts)) return false;
      const Attempt one = request_.state.stages[std::string(stage)][number];
      fitness::WorldChecks world;
      fitness::HostChecks unfinished;
      auto run = run_of(one, unfinished);
      if (run) skips_[stage] = fitness::skips_text(*run);
      if (run && one.lost.empty()) world = fitness::judge_world(std::move(*run), one.hosts, floors());
      add_to(world.checks, unfinished);
      world.repeat = world.repeat || !one.lost.empty();
      keep(stage, world.checks);
      hosts = remaining();
      if (!world.repeat || hosts.size() == one.hosts.size() || hosts.empty()) break;
      if (!request_.why_not_run(stage, hosts.size()).empty()) break;
    }
    return true;
  }

  // ---- the result

  // Why a host has no result of a check, and whether the level requires one.
  void explain_not_run() {
    for (AcceptedHost& host : hosts_) {
      std::string failed;
      for (const std::string_view name : fitness::accept_checks) {
        fitness::HostCheck& check = host.checks[std::string(name)];
        check.required = request_.level.required.contains(std::string(name));
        if (check.state == CheckState::fail && failed.empty()) failed = name;
        if (check.state != CheckState::not_run || !check.evidence.empty()) continue;
        const std::string why = request_.why_not_run(name, request_.state.hosts.size());
        const bool few = (name == "pairs" || name == "collectives") && remaining().size() < 2;
        check.evidence.push_back(!why.empty()      ? why
                                 : !failed.empty() ? "it failed in " + failed
                                 : few             ? "fewer than two hosts are left"
                                                   : "not reached");
      }
    }
  }

  void collect_evidence(AcceptedHost& host) {
    fitness::EvidenceInput input;
    input.host = host.host;
    input.with_serials = request_.state.with_serials;
    input.environment = nullptr;
    if (const auto answer = std::ranges::find(audit_.hosts, host.host, &fitness::AuditedHost::host);
        answer != audit_.hosts.end())
      input.audit = *answer;
    for (const auto& [stage, attempts] : request_.state.stages)
      for (const Attempt& one : attempts) {
        std::error_code none;
        const bool took_part = std::find(one.hosts.begin(), one.hosts.end(), host.host) != one.hosts.end();
        if (took_part && fs::exists(dir_ / one.dir / "records.jsonl", none)) input.runs.push_back(dir_ / one.dir);
      }
    std::vector<std::string> failed;
    for (const auto& [name, check] : host.checks) {
      if (check.state != CheckState::fail) continue;
      input.missed.insert(input.missed.end(), check.missed.begin(), check.missed.end());
      failed.insert(failed.end(), check.broken.begin(), check.broken.end());
      if (name == "pairs" || name == "collectives") failed.emplace_back("collective");
    }
    for (const fitness::MissedFloor& one : input.missed) failed.push_back(one.key);
    // One host's GPUs may all be missing.
    const bool has_gpus = std::any_of(hosts_.begin(), hosts_.end(), [](const auto& one) { return !one.gpus.empty(); });
    host.commands = input.commands = fitness::vendor_commands(host.problems, failed, has_gpus);
    try {
      std::error_code none;
      fs::create_directories(dir_ / "evidence", none);
      const std::string file = fmt::format("evidence/{}.tar", host.host);
      replace_file(dir_ / file, tar_bytes(fitness::evidence_members(input)));
      host.evidence_file = file;
    } catch (const Error& error) {
      notes_.push_back(fmt::format("no evidence of {}: {}", host.host, error.what()));
    }
  }

  ExitCode publish(bool complete) {
    explain_not_run();
    for (AcceptedHost& host : hosts_)
      if (host.state() == CheckState::fail && complete) collect_evidence(host);
    for (const auto& [stage, text] : skips_)
      if (!text.empty()) notes_.push_back(fmt::format("{}: {}", stage, text));
    const bool judged = std::any_of(hosts_.begin(), hosts_.end(), [](const AcceptedHost& host) {
      return std::any_of(host.checks.begin(), host.checks.end(), [](const auto& one) { return one.second.floor; });
    });
    if (!judged)
      notes_.emplace_back("nothing judged how fast, only whether results are right: --floors FILE, or three hosts");
    fitness::Acceptance all{.level = request_.level.name,
                            .started = request_.state.started,
                            .seconds = request_.state.seconds,
                            .hosts = hosts_,
                            .notes = notes_,
                            .finished = complete};
    if (complete) all.not_measured = unmeasured_.left();
    const report::Document document = report::accept_document(all);
    const std::string json = dump_document(report::accept_json(all, request_.state.with_serials));
    replace_file(dir_ / "accept.json", json);
    replace_file(dir_ / "accept.csv", report::accept_csv(all));
    replace_file(dir_ / "accept.html", report::render_html(document));
    if (!options_.json.empty()) write_named_file("accept", options_.json, json);
    results_are_stored();
    print(document, {options_.json});
    if (!complete) {
      say(fmt::format("not complete; continue with: assay accept --resume {}", dir_.string()));
      return ExitCode::no_data;
    }
    say(fmt::format("table: {}", (dir_ / "accept.html").string()));
    return worst(all.code(), broke_ ? ExitCode::broken : ExitCode::ok);
  }

  AcceptOptions options_;
  AcceptRequest request_;
  std::vector<std::string> families_ = family_names();
  fs::path dir_;
  Children* children_ = nullptr;
  Clock::time_point began_;
  fitness::AuditedFleet audit_;
  std::vector<AcceptedHost> hosts_;
  std::vector<std::string> notes_;
  fitness::UnmeasuredFloors unmeasured_;
  std::map<std::string_view, std::string> skips_;  // by stage: cases that ran nowhere
  bool broke_ = false;                             // the tool, not a host
};

}  // namespace

Command accept_command(CLI::App& root) {
  auto options = std::make_shared<AcceptOptions>();
  CLI::App* app = root.add_subcommand("accept", "Accept a cluster: audit, every host, pairs, collectives, training");
  app->add_option("--hostfile", options->hostfile, "Hosts, one per line; default: those of the Slurm job, or this one")
      ->type_name("FILE");
  app->add_option("--level", options->level, "quick, day or burn-in, or a file like those in configs/accept")
      ->type_name("LEVEL|FILE");
  app->add_option("--floors", options->floors, "A floors file, or the name of one in configs/floors")
      ->type_name("FILE");
  app->add_option("--device", options->device, "auto, cpu or cuda; auto uses the GPUs if there are any")
      ->type_name("KIND");
  app->add_option("--out", options->out, "Folder to create; default runs/accept-<start>")->type_name("DIR");
  app->add_option("--resume", options->resume, "Continue this acceptance")->type_name("DIR");
  add_json_to(*app, options->json);
  app->add_flag("--with-serials", options->with_serials, "Show the GPUs' serial numbers");
  app->add_flag("--dry-run", options->dry_run, "Print stages, hosts and times; run nothing");
  return {app, [options] {
            AcceptRequest request = make_accept_request(*options);
            // Of the processes that srun starts, only one accepts.
            if (request.allocation.part != Part::supervisor) return ExitCode::ok;
            if (!options->dry_run) return Acceptor(*options, std::move(request)).run();
            show_text(request.schedule());
            return ExitCode::ok;
          }};
}

}  // namespace assay::cli
