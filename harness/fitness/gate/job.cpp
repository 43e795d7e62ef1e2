#include "harness/fitness/gate/job.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/fitness/cluster/cluster.h"
#include "harness/fitness/cluster/pairs.h"
#include "harness/fitness/gate/place.h"
#include "harness/json/json.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace assay::gate {

namespace fs = std::filesystem;

namespace {

constexpr const char* job_plan = "gate-job";
constexpr const char* of_pairs = "op=(pairwise|rails)/";
constexpr double max_start_seconds = 10;    // of all hosts, for a measurement
constexpr double end_seconds = 1;           // that a measurement gets to end its processes
constexpr double share_of_pairs = 0.5;      // of the time of a measurement, at least
constexpr double share_of_own_gates = 0.5;  // of the budget, until the last host has answered
constexpr double pair_share = 0.6;          // of the usual pair, as of the levels of `assay accept`

class JobGate {
 public:
  JobGate(const Request& request, const Allocation& job, std::string hostfile, Trials& trials, const Ask& ask,
          fs::path folder)
      : request_(request),
        job_(job),
        hostfile_(std::move(hostfile)),
        trials_(trials),
        ask_(ask),
        folder_(std::move(folder)) {}

  Answer run() {
    std::ranges::remove_copy(request_.remarks, std::back_inserter(answer_.notes), "");
    ask_each();
    if (request_.inject)
      answer_.notes.emplace_back("a drill: the hosts are not measured together");
    else
      measure_together();
    answer_.decision = decide(evidence_, {}, request_.catalogue);
    if (trials_.interrupted()) {
      answer_.decision.verdict = Fitness::unknown;
      answer_.decision.why_not = "interrupted by a signal";
      answer_.notes.push_back(answer_.decision.why_not);
    }
    answer_.notes.insert(answer_.notes.end(), evidence_.unseen.begin(), evidence_.unseen.end());
    for (const JobHost& host : answer_.hosts)
      if (host.absent || host.verdict == Fitness::fail) answer_.exclude.push_back(host.host);
    answer_.seconds = std::chrono::duration<double>(trials_.now() - request_.start).count();
    return std::move(answer_);
  }

 private:
  double left() const {
    return request_.budget - end_seconds - std::chrono::duration<double>(trials_.now() - request_.start).count();
  }

  JobHost& host_named(const std::string& name) { return *std::ranges::find(answer_.hosts, name, &JobHost::host); }

  // Takes what the host itself, or its measurement with others, found.
  void add(const std::string& host, Finding finding) {
    finding.host = host;
    finding.severity = std::min(finding.severity, request_.catalogue.of(finding.id).at_most);
    JobHost& of = host_named(host);
    if (finding.severity == Severity::fault) of.verdict = Fitness::fail;
    if (finding.severity == Severity::warning && of.verdict != Fitness::fail) of.verdict = Fitness::unsure;
    evidence_.problems.push_back(std::move(finding));
  }

  void lose(const std::string& host, const std::string& why) {
    JobHost& of = host_named(host);
    if (std::exchange(of.absent, true)) return;
    if (of.verdict != Fitness::fail) of.verdict = Fitness::unknown;
    evidence_.unseen.push_back(fmt::format("host {} did not arrive: {}", host, one_line(why)));
  }

  void ask_each() {
    const double until = share_of_own_gates * request_.budget;
    const double own = std::max(0.5 * until, until - 2);  // starting a gate there takes the rest
    for (const HostAnswer& one : ask_(job_, words_for_host(request_, own), until)) {
      answer_.hosts.push_back({.host = one.host, .asked = one.asked});
      if (!one.asked) {
        evidence_.unseen.push_back(fmt::format("host {} was not asked: {}", one.host, one_line(one.err)));
        continue;
      }
      try {
        if (!one.exit_code) throw Error(one.err);
        read_answer(one.host, parse_untrusted(one.out));
      } catch (const Error& error) {
        const bool silent = one.exit_code && one.out.empty();
        lose(one.host, silent && !one.err.empty() ? last_lines(one.err, 1) : error.what());
      }
    }
  }

  void read_answer(const std::string& host, const Json& answer) {
    const std::string verdict = text_member(answer, "/verdict");
    const auto known = std::ranges::find(verdict_words, verdict);
    if (known == verdict_words.end()) throw Error("its answer is not that of a gate");
    JobHost& of = host_named(host);
    of.verdict = of.own = *from_name(verdict);
    for (const Json& one : member(answer, "/findings")) {
      Finding finding{.id = text_member(one, "/id"),
                      .severity = from_word<Severity>(text_member(one, "/severity")).value_or(Severity::warning),
                      .seen = one_line(text_member(one, "/text"), 2000),
                      .meaning = one_line(text_member(one, "/meaning"), 2000),
                      .device = one_line(text_member(one, "/device"))};
      add(host, std::move(finding));
    }
    std::set<std::string> gpus;
    for (const Json& test : member(answer, "/tests"))
      if (const std::string device = text_member(test, "/device"); !device.empty()) gpus.insert(device);
    of.gpus = gpus.size();
    of.verdict = of.own;
    evidence_.audited = evidence_.audited || of.own != Fitness::unknown;
    if (of.own != Fitness::unknown) return;
    const Json& notes = member(answer, "/notes");
    const std::string why =
        notes.is_array() && !notes.empty() ? scalar_text(notes.back()) : std::string("it does not say why");
    evidence_.unseen.push_back(fmt::format("{} was not judged: {}", host, one_line(why)));
  }

  static std::optional<Fitness> from_name(std::string_view word) {
    for (const Fitness one : {Fitness::pass, Fitness::unknown, Fitness::unsure, Fitness::fail})
      if (name_of(one, verdict_words) == word) return one;
    return std::nullopt;
  }

  std::vector<std::string> present() const {
    std::vector<std::string> names;
    for (const JobHost& host : answer_.hosts)
      if (host.asked && !host.absent && host.own != Fitness::fail) names.push_back(host.host);
    return names;
  }

  Trial trial_of(const std::vector<std::string>& hosts, const std::string& filter) {
    std::size_t gpus = max_hosts;
    for (const std::string& host : hosts) gpus = std::min(gpus, host_named(host).gpus);
    const std::size_t ranks = std::max<std::size_t>(1, gpus);
    std::vector<std::string> slots;
    for (const std::string& host : hosts) slots.push_back(fmt::format("{}:{}", host, ranks));
    Trial trial{.plan = {job_plan},
                .filter = filter,
                .device = gpus > 0 ? "cuda" : "cpu",
                .ranks = static_cast<int>(ranks * hosts.size()),
                .hosts = joined(slots, ","),
                .hostfile = hostfile_,
                .out = folder_ / fmt::format("job-{}", ++runs_),
                .environment = variables_of_launcher(),
                .deadline = left(),
                .grace_seconds = end_seconds};
    trial.environment["ASSAY_LAUNCH_LIMIT"] = fmt::format("{:.1f}s", std::min(max_start_seconds, 0.5 * left()));
    if (::geteuid() == 0)
      for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"})
        trial.environment[name] = "1";
    return trial;
  }

  void not_measured(const std::string& why) {
    evidence_.unseen.push_back("the hosts were not measured together: " + one_line(why));
  }

  void measure_together() {
    if (job_.hosts.size() < 2) return;
    if (::geteuid() == 0) answer_.notes.emplace_back("what is between the hosts is measured as root");
    std::vector<std::string> hosts;
    std::optional<TrialResult> result;
    // Hosts that are lost leave the others to be measured once more.
    for (int tries = 0; tries < 2 && hosts != present(); ++tries) {
      hosts = present();
      if (hosts.size() < 2) return not_measured("fewer than two hosts are left");
      if (left() <= 0) return not_measured("no time is left in the budget");
      result = std::move(trials_.run({trial_of(hosts, "")}).front());
      if (result->ended)
        for (const std::string& host : result->ended->lost)
          if (std::ranges::find(hosts, host) != hosts.end()) lose(host, last_lines(result->errors, 1));
    }
    if (!result->run || !result->complete) {
      const bool late = result->failure && result->failure->kind == FailureKind::timeout;
      not_measured(late ? fmt::format("not done after {}", format_seconds(result->seconds))
                        : last_lines(result->errors, 1));
    }
    if (result->run && hosts == present()) judge(std::move(*result->run), hosts, result->seconds);
  }

  void judge(RunData run, const std::vector<std::string>& hosts, double seconds) {
    fitness::WorldChecks world = fitness::judge_world(run, hosts, floors());
    const std::set<std::string> slow = world.slow;
    bool sure = slow.empty();
    if (!sure && share_of_pairs * seconds < left()) {
      const TrialResult again =
          std::move(trials_.run({trial_of(fitness::with_partners(slow, hosts), of_pairs)}).front());
      sure = again.run && again.complete;
      if (sure) fitness::keep_better_pairs(run, *again.run, slow);
      if (sure) world = fitness::judge_world(std::move(run), hosts, floors());
    }
    if (!world.note.empty()) answer_.notes.push_back(world.note);
    // A case that broke or was skipped on all hosts alike tells nothing about any of them.
    const auto unsure = [](const auto& one) { return one.second.state == Fitness::unsure; };
    if (slow.empty() && std::ranges::all_of(world.checks, unsure))
      return not_measured(joined(world.checks.begin()->second.evidence, "; "));
    for (const auto& [host, check] : world.checks) note(host, check, sure || !slow.contains(host));
  }

  fitness::StageFloors floors() const { return {.pair_share = pair_share, .families = request_.families}; }

  void note(const std::string& host, const fitness::HostCheck& check, bool sure) {
    if (check.state == Fitness::pass || check.state == Fitness::unknown) return;
    std::string device;
    for (const fitness::FailedPart& one : check.culprits)
      device += fmt::format("{}{}{}", device.empty() ? "" : ", ", one.part, one.device.empty() ? "" : " " + one.device);
    std::string text = joined(check.evidence, "; ");
    if (!sure) text += "; measured only once";
    const bool fault = sure && check.state == Fitness::fail;
    add(host, {.id = fault ? "job-host" : "job-link",
               .severity = fault ? Severity::fault : Severity::warning,
               .seen = one_line(text, 400),
               .device = device == "host" ? "" : device});
  }

  const Request& request_;
  const Allocation& job_;
  const std::string hostfile_;
  Trials& trials_;
  const Ask& ask_;
  const fs::path folder_;
  int runs_ = 0;
  Evidence evidence_;
  Answer answer_;
};

}  // namespace

std::optional<Allocation> find_job(const std::string& hostfile, const Environment& environment) {
  if (hostfile.empty() && !environment("SLURM_STEP_NUM_TASKS")) return std::nullopt;
  Allocation job = find_allocation(hostfile.empty() ? std::nullopt : std::optional<fs::path>(hostfile), environment);
  if (job.only_here() || job.source == LaunchSource::environment) return std::nullopt;
  return job;
}

std::string why_only_here(const Environment& environment) {
  try {
    const Allocation all = find_allocation(std::nullopt, environment);
    const bool several =
        all.source == LaunchSource::environment ? all.size > all.local_size.value_or(1) : !all.only_here();
    return several ? fmt::format("only this host was judged, and not what is between the hosts of {}", all.origin) : "";
  } catch (const UsageError& error) {
    return fmt::format("only this host was judged: {}", error.what());
  }
}

std::vector<std::string> words_for_host(const Request& request, double seconds) {
  std::vector<std::string> words{"gate", "--alone", "--json", "--budget", fmt::format("{:.1f}s", seconds)};
  const auto add = [&](const char* flag, const std::string& value) {
    std::error_code none;
    // A host's shell starts in another folder.
    const bool file = value.find('/') != value.npos || fs::exists(value, none);
    if (!value.empty()) words.insert(words.end(), {flag, file ? fs::absolute(value).string() : value});
  };
  add("--gpus", request.gpus);
  add("--profile", request.profile);
  if (request.floors) add("--floors", request.floors->file);
  add("--expect", request.expect);
  if (request.policy) add("--policy", request.policy->file);
  if (request.observe) words.emplace_back("--observe");
  if (request.inject) add("--inject", request.inject->id);
  return words;
}

Answer run_job_gate(const Request& request, const Allocation& job, const std::string& hostfile, Trials& trials,
                    const Ask& ask, const fs::path& folder) {
  return JobGate(request, job, hostfile, trials, ask, folder).run();
}

Answer run_job_gate(const Request& request, const Allocation& job, const std::string& hostfile) {
  const Workspace workspace;
  if (!workspace.problem().empty()) throw Error("gate: " + workspace.problem());
  ChildTrials trials("the commands");
  const Ask ask = [](const Allocation& hosts, const std::vector<std::string>& words, double seconds) {
    return ask_hosts(hosts, words, seconds, Asking::all_at_once);
  };
  return run_job_gate(request, job, hostfile, trials, ask, workspace.path());
}

}  // namespace assay::gate
