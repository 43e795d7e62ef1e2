#include "harness/fitness/gate/gate.h"

#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/core/trust.h"
#include "harness/core/units.h"
#include "harness/fitness/gate/allotment.h"
#include "harness/fitness/gate/past.h"
#include "harness/fitness/gate/place.h"
#include "harness/fitness/gate/repeats.h"
#include "harness/fitness/gate/test_runner.h"
#include "harness/machine/root.h"
#include "harness/plan/machine.h"
#include "harness/run/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <set>
#include <string>
#include <utility>

namespace assay::gate {

namespace fs = std::filesystem;

namespace {

constexpr double max_busy_cpus = 0.5;

Clock::duration in_seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Killing, removing and printing take the rest.
Clock::time_point stop_of(const Request& request) {
  return request.start + in_seconds(request.budget - std::min(0.7, 0.2 * request.budget));
}

// Settings of libraries that floors were learned with and that this gate has not, as the environment of root's is
// cleared.
std::string missing_settings(const fitness::Floors& floors) {
  std::set<std::string> missing;
  for (const fitness::Floor& floor : floors.floors)
    for (const auto& [name, value] : floor.labels) {
      const bool variable = std::ranges::all_of(
          name, [](char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); });
      const char* const now = std::getenv(name.c_str());
      if (variable && !(now && value == now)) missing.insert(fmt::format("{}={}", name, value));
    }
  return missing.empty()
             ? ""
             : fmt::format("; they are of runs with {}, which this gate runs without", fmt::join(missing, ", "));
}

class Gate {
 public:
  Gate(const Request& request, Trials& trials, Surroundings& host)
      : request_(request),
        trials_(trials),
        host_(host),
        runner_(request, trials, stop_of(request), workspace_->path()) {}

  Answer run() {
    const std::time_t now = std::time(nullptr);
    std::ranges::remove_copy(request_.remarks, std::back_inserter(answer_.notes), "");
    if (wait_for_others()) measure();
    workspace_.reset();
    // A drill shows one fault, and nothing else is required of it.
    if (!request_.inject)
      for (std::string& one : unseen(evidence_.tests, request_.catalogue)) evidence_.unseen.push_back(std::move(one));
    answer_.decision = decide(evidence_, allotment_.scope(gpus_), request_.catalogue);
    recall(now);
    if (request_.policy && !request_.inject && !trials_.interrupted()) follow_policy(*request_.policy, now);
    if (trials_.interrupted()) {
      answer_.decision.verdict = Fitness::unknown;
      answer_.decision.why_not = "interrupted by a signal";
      answer_.notes.push_back(answer_.decision.why_not);
    } else if (!request_.inject) {
      keep(now);
    }
    answer_.notes.insert(answer_.notes.end(), evidence_.unseen.begin(), evidence_.unseen.end());
    answer_.tests = evidence_.tests;
    answer_.seconds = std::chrono::duration<double>(trials_.now() - request_.start).count();
    return std::move(answer_);
  }

 private:
  void recall(std::time_t now) {
    try {
      answer_.past = read_past(host_.memory(), now).text();
    } catch (const Error& error) {
      answer_.notes.push_back(fmt::format("past verdicts are not known: {}", error.what()));
    }
  }

  void keep(std::time_t now) {
    try {
      remember(host_.memory(), now, answer_.decision, request_.catalogue,
               request_.observe ? "observed"
               : withheld_      ? "withheld"
                                : "");
    } catch (const Error& error) {
      answer_.notes.push_back(fmt::format("what was found is not kept: {}", error.what()));
    }
  }

  void follow_policy(const Policy& policy, std::time_t now) {
    if (policy.suspect) escalate(*policy.suspect, now);
    if (!policy.at_most || request_.observe) return;
    constexpr double patience_seconds = 5;
    const bool drain = answer_.decision.verdict == Fitness::fail;
    FuseAnswer fuse = ask_fuse(*policy.at_most, this_host(), now, drain, patience_seconds);
    if (policy.at_most->shared.empty())
      answer_.notes.push_back(
          fmt::format("drains are counted in {}: name a folder that all hosts see as \"shared\" in {}",
                      folder_of(*policy.at_most).string(), policy.file));
    if (drain && (fuse.blown || !fuse.problem.empty())) withhold(policy, fuse);
    answer_.fuse = std::move(fuse);
  }

  // Suspicions that add up: this one is among them.
  void escalate(const Escalation& suspect, std::time_t now) {
    auto& findings = answer_.decision.findings;
    if (findings.empty() || findings.front().severity != Severity::warning) return;
    std::size_t times = 1;
    try {
      times += read_past(host_.memory(), now, suspect.within_seconds).suspect;
    } catch (const Error&) {  // recall() has said so
    }
    if (times < suspect.times) return;
    for (Finding& one : findings)
      if (one.severity == Severity::warning) {
        one.severity = Severity::fault;
        one.seen += fmt::format(" (suspect {} times within {})", times, format_seconds(suspect.within_seconds));
      }
    answer_.decision.verdict = Fitness::fail;
    answer_.decision.why_not.clear();
  }

  void withhold(const Policy& policy, const FuseAnswer& fuse) {
    withheld_ = true;
    answer_.decision.verdict = Fitness::unknown;
    std::string& why = answer_.decision.why_not;
    const std::string limit = fmt::format("{} drains of {} hosts, at most {} ({})", fuse.drains, fuse.hosts,
                                          fuse.allowed, policy.at_most->text);
    if (!fuse.problem.empty())
      why = fmt::format("no drain, as drains cannot be counted: {}", fuse.problem);
    else if (fuse.alarm)
      why = fmt::format("ALARM: the fuse has blown: {}; no gate drains until assay gate --reset-fuse --policy {}",
                        limit, policy.file);
    else
      why = fmt::format("no drain: the fuse has blown at {} on {} ({}); assay gate --reset-fuse resets it", fuse.since,
                        fuse.by, limit);
    answer_.notes.push_back(why);
  }

  bool wait_for_others() {
    const Clock::time_point until = trials_.now() + in_seconds(request_.budget / 3);
    while (!host_.alone()) {
      if (trials_.now() >= until || trials_.interrupted()) {
        evidence_.unseen.emplace_back("another gate runs on this host, for longer than a third of the budget");
        return false;
      }
      trials_.wait(trials_.now() + in_seconds(0.02));
    }
    return true;
  }

  bool injects(std::string_view test) const { return request_.inject && request_.inject->test == test; }

  void measure() {
    if (request_.inject && workspace_->path().empty()) throw Error("gate: " + workspace_->problem());
    const bool fits = !request_.catalogue.choose(runner_.left(), false).empty();
    look_at_machine(fits);
    allot();
    plan(fits);
    compute();
    for (TestOutcome& outcome : evidence_.tests) {
      if (outcome.test == "audit" || workspace_->problem().empty() || !outcome.reason.empty()) continue;
      outcome.reason = workspace_->problem();
      if (outcome.test == "disk") outcome.state = TestState::broke;
    }
    bool shared_seen = request_.inject != nullptr;
    for (const Test* test : planned_) {
      if (test->shared && !std::exchange(shared_seen, true)) leave_out_shared();
      runner_.begin(*test);
      runner_.measure(*test, to_run(*test), targets_);
    }
    repeat_doubtful();
    for (const std::string& text : runner_.drills()) answer_.notes.push_back("a drill: " + text);
    if (request_.floors && !runner_.used_floors() && (!request_.inject || *request_.inject->inject == "slow-rank"))
      evidence_.unseen.push_back(fmt::format("no floor of {} judged a figure of this gate{}{}", request_.floors->file,
                                             runner_.floors_refused(), missing_settings(*request_.floors)));
  }

  // A fault of one test, or of a machine's files, is looked for by that test alone.
  void look_at_machine(bool fits) {
    const Test& test = request_.catalogue.test("audit");
    const bool gpu_fault = request_.inject && request_.catalogue.test(request_.inject->test).device == "cuda";
    if (fits && (!request_.inject || injects("audit") || gpu_fault)) {
      TestOutcome outcome{.test = test.name};
      if (auto seen = runner_.audit(test, outcome)) {
        evidence_.audited = true;
        evidence_.problems = std::move(seen->audit.problems);
        for (const Finding& one : evidence_.problems)
          if (one.id == expected_unread) evidence_.unseen.push_back(one.seen);
        gpus_ = std::move(seen->gpus);
        std::vector<std::string> names = seen->audit.hardware_names();
        for (const GpuHere& gpu : gpus_) names.push_back(gpu.name);
        if (request_.floors && !request_.inject) fitness::require_hardware(*request_.floors, std::move(names));
        runner_.withhold(seen->withheld_cpus);
      }
      evidence_.tests.push_back(std::move(outcome));
    }
    const bool audited = evidence_.audited;
    if (gpu_fault) evidence_ = {};  // the audit only says which GPUs are here
    if (!audited && (!request_.inject || gpu_fault))
      for (const std::string& pci : host_.gpus()) gpus_.push_back({.pci = pci, .uuid = {}, .name = {}});
  }

  void allot() {
    const bool fake = request_.inject && *request_.inject->inject == "files";
    allotment_ = find_allotment(request_.gpus, fake ? Variables() : host_.environment(), gpus_);
    targets_ = allotment_.targets(gpus_);
    for (const std::string& name : allotment_.missing) {
      const std::string text =
          fmt::format("GPU {} of {} is not among the {} here", name, allotment_.source, gpus_.size());
      if (evidence_.audited)
        evidence_.problems.push_back(
            {"gpu-not-there", allotment_.certain ? Severity::fault : Severity::warning, text, {}, {}});
      if (!request_.inject && (!evidence_.audited || gpus_.empty())) evidence_.unseen.push_back(text);
    }
    for (const std::string& name : allotment_.unmapped)
      answer_.notes.push_back(fmt::format("{}: {}; every GPU here counts", allotment_.source, name));
    if (allotment_.none)
      answer_.notes.push_back(fmt::format("by {} the job gets no GPU, so none is tested", allotment_.source));
    for (const GpuHere& gpu : allotment_.gpus)
      if (std::ranges::none_of(targets_, [&](const Target& one) { return one.device.starts_with(gpu.device()); }))
        answer_.notes.push_back(fmt::format("{} is not tested: the driver does not show it here", gpu.device()));
  }

  void plan(bool fits) {
    const Catalogue& catalogue = request_.catalogue;
    const auto chosen = catalogue.choose(runner_.left() + catalogue.test("audit").seconds, !targets_.empty());
    for (const Test* test : fits ? chosen : std::vector<const Test*>()) {
      if (test->name == "audit" || (request_.inject && !injects(test->name))) continue;
      add_tests(*test, {});
      planned_.push_back(test);
      runner_.plan(test->seconds);
    }
    std::string why = "left out: the budget has too little time for it";
    if (!fits) {
      const auto shortest = std::ranges::min_element(catalogue.tests, {}, &Test::seconds);
      why = fmt::format("the budget of {:g} s is too small for any test: the shortest, {}, takes {:g} s",
                        request_.budget, shortest->name, shortest->seconds);
      evidence_.unseen.push_back(why);
    }
    for (const Test& test : catalogue.tests)
      if (test.device != "job" && !request_.inject && !(fits && test.name == "audit") &&
          std::ranges::find(planned_, &test) == planned_.end())
        add_tests(test, test.left_out ? fmt::format("not in the profile {}", request_.profile) : why);
  }

  void compute() {
    if (std::ranges::all_of(planned_, [](const Test* test) { return test->plan.empty(); })) return;
    Computing computing = host_.computing(workspace_->path(), !targets_.empty());
    if (!computing.remark.empty()) answer_.notes.push_back(std::move(computing.remark));
    runner_.compute_with(std::move(computing.variables));
  }

  void add_tests(const Test& test, const std::string& why_not) {
    TestOutcome outcome{.test = test.name, .reason = why_not};
    if (test.device != "cuda") return evidence_.tests.push_back(std::move(outcome));
    for (const Target& target : targets_) {
      outcome.device = target.device;
      outcome.reason = target.why_not.empty() ? why_not : target.why_not;
      evidence_.tests.push_back(outcome);
    }
  }

  // Memory and all cores are another job's too: its figures would suffer, and ours say nothing.
  void leave_out_shared() {
    const Variables environment = host_.environment();
    const auto own = environment.find("SLURM_JOB_ID");
    const auto jobs = host_.other_jobs(own == environment.end() ? std::string() : own->second);
    std::string why;
    if (!jobs.empty())
      why = fmt::format("job {} runs on this host", fmt::join(jobs, ", "));
    else if (!allotment_.unmapped.empty())
      why = "which of the GPUs are this job's is not known";
    else if (allotment_.part(gpus_.size()))
      why = fmt::format("{} of the {} GPUs may be another job's", gpus_.size() - allotment_.gpus.size(), gpus_.size());
    else if (const double busy = lasting_busy_cpus(); busy >= max_busy_cpus)
      why = fmt::format("others use {:.1f} CPUs", busy);
    if (why.empty()) return;
    for (TestOutcome& outcome : evidence_.tests)
      if (request_.catalogue.test(outcome.test).shared && outcome.reason.empty()) outcome.reason = why;
  }

  // A moment's load, as of a job that is just ending, is waited for.
  double lasting_busy_cpus() {
    const Clock::time_point until = trials_.now() + in_seconds(runner_.left() / 4);
    double busy = busy_cpus();
    while (busy >= max_busy_cpus && trials_.now() < until && !trials_.interrupted()) busy = busy_cpus();
    return busy;
  }

  // CPUs that others use now, looked at for a fifth of a second.
  double busy_cpus() {
    const auto before = host_.ticks();
    trials_.wait(std::min(trials_.now() + in_seconds(0.2), stop_of(request_)));
    const auto after = host_.ticks();
    if (!before || !after || after->total <= before->total) return 0;
    const double share =
        static_cast<double>(after->busy - before->busy) / static_cast<double>(after->total - before->total);
    return share * static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  }

  // The outcomes of a test that nothing speaks against. What hangs one test on a GPU would hang the next.
  TestRunner::Outcomes to_run(const Test& test) {
    TestRunner::Outcomes open;
    for (TestOutcome& one : evidence_.tests) {
      if (one.test != test.name || !one.reason.empty()) continue;
      const auto hung = std::ranges::find_if(evidence_.tests, [&](const TestOutcome& other) {
        return !one.device.empty() && other.device == one.device && other.state == TestState::hung;
      });
      if (hung == evidence_.tests.end())
        open.push_back(&one);
      else
        one.reason = fmt::format("{} hung there", hung->test);
    }
    return open;
  }

  // Repetitions are as far apart as the budget allows, so that a short disturbance does not spoil all.
  void repeat_doubtful() {
    for (int done = 1; done < max_repetitions && !trials_.interrupted(); ++done) {
      const Repeats repeats = doubtful(evidence_.tests, planned_, runner_.left(), done);
      if (repeats.groups.empty()) return;
      const int wanted = std::max(1, static_cast<int>(needed_repetitions) - done);
      const double spare = runner_.left() - 1.2 * repeats.seconds * wanted;
      if (spare > 0) trials_.wait(trials_.now() + in_seconds(spare / (wanted + 1)));
      for (const auto& group : repeats.groups)
        runner_.measure(request_.catalogue.test(group.front()->test), group, targets_);
    }
  }

  const Request& request_;
  Trials& trials_;
  Surroundings& host_;
  std::optional<Workspace> workspace_ = std::make_optional<Workspace>();
  TestRunner runner_;
  std::vector<GpuHere> gpus_;
  Allotment allotment_;
  std::vector<Target> targets_;
  std::vector<const Test*> planned_;
  Evidence evidence_;
  bool withheld_ = false;
  Answer answer_;
};

class ThisHost final : public Surroundings {
 public:
  bool alone() override { return lock_.take(); }
  Computing computing(const fs::path& workspace, bool gpus) const override { return computing_for(workspace, gpus); }

 private:
  HostLock lock_;
};

}  // namespace

double budget_of(const std::string& flag, const Profile* profile) {
  constexpr double max_budget = 86400, usual_budget = 30;
  if (flag.empty()) return profile ? profile->budget : usual_budget;
  const double seconds = parse_flag("gate: --budget", flag, parse_seconds);
  if (seconds <= 0 || seconds > max_budget)
    throw UsageError(fmt::format("gate: --budget {}: must be above 0 and at most a day", one_line(flag)));
  return seconds;
}

std::vector<std::string> Surroundings::other_jobs(const std::string& own) const {
  return gate::other_jobs(Root(), own);
}

std::vector<std::string> Surroundings::gpus() const { return gpus_here(user_root().path()); }

std::optional<CpuTicks> Surroundings::ticks() const { return cpu_ticks(Root(), {}); }

fs::path Surroundings::memory() const {
  fs::path file = make_private(cache_folder() / "gate") / (this_host() + ".jsonl");
  if (const std::string why = why_untrusted(file); !why.empty()) throw Error(why);
  return file;
}

Answer run_gate(const Request& request, Trials& trials, Surroundings& host) {
  return Gate(request, trials, host).run();
}

Answer run_gate(const Request& request) {
  constexpr double max_seconds_to_die = 0.2;
  ChildTrials trials("the commands", max_seconds_to_die);
  ThisHost host;
  return run_gate(request, trials, host);
}

}  // namespace assay::gate
