// Runs a gate's tests, each in a process of its own, until the budget ends.
#include "cli/catalogue.h"
#include "cli/gate.h"
#include "cli/gate_place.h"
#include "harness/core/configs.h"
#include "harness/core/host.h"
#include "harness/core/program.h"
#include "harness/core/text.h"
#include "harness/fitness/floors/words.h"
#include "harness/fitness/gate/fault_machine.h"
#include "harness/fitness/gate/inspection.h"
#include "harness/json/members.h"
#include "harness/machine/cpu_ticks.h"
#include "harness/plan/machine.h"
#include "harness/process/run.h"
#include "harness/record/flags.h"
#include "harness/run/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <regex>

namespace assay::cli {

namespace {

namespace fs = std::filesystem;
using gate::TestState;

Clock::duration in_seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::string why_wrong(const Record& record) {
  for (const Check& check : record.checks)
    if (!check.passed) return one_line(fmt::format("{} {}", check.name, fmt::join(check.detail, ", ")));
  return one_line(record.reason);
}

class Gate {
 public:
  explicit Gate(const GateRequest& request)
      : request_(request),
        commands_("the commands", max_seconds_to_die),
        // The rest is for killing, removing and printing.
        stop_(request.start + in_seconds(request.budget - std::min(0.7, 0.2 * request.budget))) {}

  GateAnswer run() {
    const fs::path memory = cache_folder() / "gate" / (this_host() + ".jsonl");
    const std::time_t now = std::time(nullptr);
    {
      const HostLock lock;
      if (wait_for(lock)) measure();
    }
    // A drill shows one fault, and nothing else is required of it.
    if (!request_.inject)
      for (std::string& one : gate::unseen(evidence_.tests, request_.catalogue))
        evidence_.unseen.push_back(std::move(one));
    answer_.decision = gate::decide(evidence_, allotment_.scope(gpus_), request_.catalogue);
    try {
      answer_.past = gate::read_past(memory, now).text(gate::past_days);
    } catch (const Error& error) {
      answer_.notes.push_back(fmt::format("past verdicts are not known: {}", error.what()));
    }
    if (commands_.interrupted()) {
      answer_.decision.verdict = gate::Verdict::not_judged;
      answer_.decision.why_not = "interrupted by a signal";
      answer_.notes.push_back(answer_.decision.why_not);
    } else if (!request_.inject) {
      remember(memory, now);
    }
    answer_.notes.insert(answer_.notes.end(), evidence_.unseen.begin(), evidence_.unseen.end());
    answer_.tests = evidence_.tests;
    answer_.seconds = seconds_since(request_.start);
    return std::move(answer_);
  }

 private:
  static constexpr double max_seconds_to_die = 0.2;

  double left() const { return std::chrono::duration<double>(stop_ - Clock::now()).count(); }

  void remember(const fs::path& memory, std::time_t now) {
    try {
      gate::remember(memory, now, answer_.decision, request_.catalogue);
    } catch (const Error& error) {
      answer_.notes.push_back(fmt::format("what was found is not kept: {}", error.what()));
    }
  }

  bool wait_for(const HostLock& lock) {
    const Clock::time_point until = Clock::now() + in_seconds(request_.budget / 3);
    while (!lock.take()) {
      if (Clock::now() >= until || commands_.interrupted()) {
        evidence_.unseen.emplace_back("another gate runs on this host, for longer than a third of the budget");
        return false;
      }
      commands_.wait(Clock::now() + in_seconds(0.02));
    }
    return true;
  }

  bool injects(std::string_view test) const { return request_.inject && request_.inject->test == test; }

  void measure() {
    const Workspace workspace;
    folder_ = workspace.path();
    if (request_.inject && folder_.empty()) throw Error("gate: " + workspace.problem());
    const gate::Catalogue& catalogue = request_.catalogue;
    const bool fits = !catalogue.choose(left(), false).empty();
    look_at_machine(fits);
    plan(fits);
    for (gate::TestOutcome& outcome : evidence_.tests) {
      if (outcome.test == "audit" || workspace.problem().empty() || !outcome.reason.empty()) continue;
      outcome.reason = workspace.problem();
      if (outcome.test == "disk") outcome.state = TestState::broke;
    }
    bool shared_seen = request_.inject != nullptr;
    for (const gate::Test* test : planned_) {
      if (test->shared && !std::exchange(shared_seen, true)) leave_out_shared();
      rest_ -= test->seconds;
      repeat(*test, to_run(*test));
    }
    repeat_doubtful();
    for (const std::string& text : drills_) answer_.notes.push_back("a drill: " + text);
    if (request_.floors && floors_used_.empty() && (!request_.inject || *request_.inject->inject == "slow-rank"))
      evidence_.unseen.push_back(
          fmt::format("no floor of {} judged a figure of this gate{}", request_.floors->file, floors_refused_));
  }

  // A fault of one test, or of a machine's files, is looked for by that test alone.
  void look_at_machine(bool fits) {
    const bool gpu_fault = request_.inject && request_.catalogue.test(request_.inject->test).device == "cuda";
    if (fits && (!request_.inject || injects("audit") || gpu_fault)) audit(request_.catalogue.test("audit"));
    const bool audited = evidence_.audited;
    if (gpu_fault) evidence_ = {};  // the audit only says which GPUs are here
    if (!audited && (!request_.inject || gpu_fault))
      for (const std::string& pci : gpus_here(user_root().path()))
        gpus_.push_back({.pci = pci, .uuid = {}, .name = {}});
    allot();
  }

  void plan(bool fits) {
    const gate::Catalogue& catalogue = request_.catalogue;
    const auto chosen = catalogue.choose(left() + catalogue.test("audit").seconds, !targets_.empty());
    for (const gate::Test* test : fits ? chosen : std::vector<const gate::Test*>()) {
      if (test->name == "audit" || (request_.inject && !injects(test->name))) continue;
      add_tests(*test, {});
      planned_.push_back(test);
      rest_ += test->seconds;
    }
    std::string why = "left out: the budget has too little time for it";
    if (!fits) {
      const auto shortest =
          std::min_element(catalogue.tests.begin(), catalogue.tests.end(),
                           [](const gate::Test& a, const gate::Test& b) { return a.seconds < b.seconds; });
      why = fmt::format("the budget of {:g} s is too small for any test: the shortest, {}, takes {:g} s",
                        request_.budget, shortest->name, shortest->seconds);
      evidence_.unseen.push_back(why);
    }
    for (const gate::Test& test : catalogue.tests)
      if (!request_.inject && !(fits && test.name == "audit") &&
          std::find(planned_.begin(), planned_.end(), &test) == planned_.end())
        add_tests(test, why);
  }

  void audit(const gate::Test& test) {
    gate::TestOutcome outcome;
    outcome.test = test.name;
    std::vector<std::string> words{program_command().string(), "gate-test", "audit"};
    Variables variables = inherited_variables();
    if (request_.inject && *request_.inject->inject == "files") {
      const fs::path root = folder_ / "machine";
      fs::create_directory(root);
      gate::write_machine(configs_dir() / "gate-faults.json", request_.inject->id, root);
      variables["ASSAY_ROOT"] = root.string();
      variables.erase("NCCL_IB_HCA");
    } else if (injects("audit")) {
      words.push_back(*request_.inject->inject);
    }
    const FinishedProcess done = run_children(test, {{words, variables}}, {&outcome}).front();
    if (done.ended() && done.code == 0) {
      try {
        auto seen = read_text<gate::Inspection>(done.output);
        withheld_cpus_ = seen.withheld_cpus;
        evidence_.problems = std::move(seen.audit.problems);
        gpus_ = std::move(seen.gpus);
        outcome.state = TestState::passed;
        evidence_.audited = true;
      } catch (const Error& error) {
        outcome.state = TestState::broke;
        outcome.reason = fmt::format("its answer cannot be read: {}", error.what());
      }
    } else if (done.ended()) {
      outcome.state = TestState::broke;
      outcome.reason = one_line(done.errors.empty() ? done.problem : done.errors);
    }
    evidence_.tests.push_back(std::move(outcome));
  }

  void allot() {
    const bool fake = request_.inject && *request_.inject->inject == "files";
    allotment_ = gate::find_allotment(request_.gpus, fake ? Variables() : variables_of_launcher(), gpus_);
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
    for (const gate::GpuHere& gpu : allotment_.gpus)
      if (std::none_of(targets_.begin(), targets_.end(),
                       [&](const gate::Target& one) { return one.device.starts_with(gpu.device()); }))
        answer_.notes.push_back(fmt::format("{} is not tested: the driver does not show it here", gpu.device()));
  }

  void add_tests(const gate::Test& test, const std::string& why_not) {
    gate::TestOutcome outcome;
    outcome.test = test.name;
    outcome.reason = why_not;
    if (test.device != "cuda") return evidence_.tests.push_back(std::move(outcome));
    for (const gate::Target& target : targets_) {
      outcome.device = target.device;
      outcome.reason = target.why_not.empty() ? why_not : target.why_not;
      evidence_.tests.push_back(outcome);
    }
  }

  // Memory and all cores are another job's too: its figures would suffer, and ours say nothing.
  void leave_out_shared() {
    const auto env = variables_of_launcher();
    const auto own = env.find("SLURM_JOB_ID");
    const auto jobs = gate::other_jobs(Root(), own == env.end() ? std::string() : own->second);
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
    for (gate::TestOutcome& outcome : evidence_.tests)
      if (request_.catalogue.test(outcome.test).shared && outcome.reason.empty()) outcome.reason = why;
  }

  static constexpr double max_busy_cpus = 0.5;

  // A moment's load, as of a job that is just ending, is waited for.
  double lasting_busy_cpus() {
    const Clock::time_point until = Clock::now() + in_seconds(left() / 4);
    double busy = busy_cpus();
    while (busy >= max_busy_cpus && Clock::now() < until && !commands_.interrupted()) busy = busy_cpus();
    return busy;
  }

  // That others use now, looked at for a fifth of a second.
  double busy_cpus() {
    const auto before = cpu_ticks(Root(), {});
    commands_.wait(std::min(Clock::now() + in_seconds(0.2), stop_));
    const auto after = cpu_ticks(Root(), {});
    if (!before || !after || after->total <= before->total) return 0;
    const double share =
        static_cast<double>(after->busy - before->busy) / static_cast<double>(after->total - before->total);
    return share * static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  }

  using Outcomes = std::vector<gate::TestOutcome*>;

  Outcomes to_run(const gate::Test& test) {
    Outcomes open;
    for (gate::TestOutcome& one : evidence_.tests) {
      if (one.test != test.name || !one.reason.empty()) continue;
      const auto hung =
          std::find_if(evidence_.tests.begin(), evidence_.tests.end(), [&](const gate::TestOutcome& other) {
            return !one.device.empty() && other.device == one.device && other.state == TestState::hung;
          });
      if (hung == evidence_.tests.end())
        open.push_back(&one);
      else
        one.reason = fmt::format("{} hung there", hung->test);
    }
    return open;
  }

  // Measures a test's outcomes once more, all at the same time.
  void repeat(const gate::Test& test, const Outcomes& outcomes) {
    if (commands_.interrupted() || outcomes.empty()) return;
    if (outcomes.front()->figures.empty() && left() < test.seconds) {
      for (gate::TestOutcome* one : outcomes) one->reason = "no time left in the budget";
      return;
    }
    if (test.plan.empty())
      check_disk(test, *outcomes.front());
    else
      run_cases(test, outcomes);
  }

  // What is to be measured again, in groups that run at once: as many as there is time for, and their seconds.
  std::pair<std::vector<Outcomes>, double> doubtful_groups(int done) {
    std::vector<Outcomes> groups;
    for (const gate::Test* test : planned_) {
      bool begun = false;
      for (gate::TestOutcome& one : evidence_.tests) {
        if (one.test != test->name || one.state != TestState::passed) continue;
        if (std::none_of(one.figures.begin(), one.figures.end(), gate::doubtful)) continue;
        if (test->alone || !std::exchange(begun, true)) groups.emplace_back();
        groups.back().push_back(&one);
      }
    }
    double seconds = 0;
    std::erase_if(groups, [&](const Outcomes& group) {
      const auto longest = std::max_element(group.begin(), group.end(),
                                            [](const auto* a, const auto* b) { return a->seconds < b->seconds; });
      const double more = (*longest)->seconds / done;
      // A verdict that more repetitions may change.
      const bool open = std::any_of(group.begin(), group.end(), [](const gate::TestOutcome* one) {
        return std::any_of(one->figures.begin(), one->figures.end(), [](const gate::Figure& figure) {
          const auto slow = gate::judge(figure);
          return gate::doubtful(figure) && (!slow || slow->severity != Severity::fault);
        });
      });
      if (!open || left() < 1.2 * (seconds + more)) return true;
      seconds += more;
      return false;
    });
    return {groups, seconds};
  }

  // Figures that did not hold are measured again, as far apart as the budget allows, so that a short disturbance does
  // not spoil all.
  void repeat_doubtful() {
    constexpr int max_repetitions = 2 * static_cast<int>(gate::needed_repetitions);
    for (int done = 1; done < max_repetitions && !commands_.interrupted(); ++done) {
      const auto [groups, seconds] = doubtful_groups(done);
      if (groups.empty()) return;
      const int wanted = std::max(1, static_cast<int>(gate::needed_repetitions) - done);
      const double spare = left() - 1.2 * seconds * wanted;
      if (spare > 0) commands_.wait(Clock::now() + in_seconds(spare / (wanted + 1)));
      for (const Outcomes& group : groups) repeat(request_.catalogue.test(group.front()->test), group);
    }
  }

  // Runs a test's children at the same time, one for each outcome; one that did not end is noted there.
  std::vector<FinishedProcess> run_children(const gate::Test& test, const std::vector<ProcessRequest>& commands,
                                            const Outcomes& outcomes) {
    const double long_enough = 3 * test.seconds + 1;
    // One that hangs leaves the time that the tests after it need.
    const double limit = std::min({left(), std::max(10.0, 15 * test.seconds), std::max(long_enough, left() - rest_)});
    std::vector<ProcessRun> runs;
    for (const ProcessRequest& command : commands) runs.push_back({.process = command, .limit_seconds = limit});
    std::vector<FinishedProcess> all = commands_.run_all(runs);
    for (std::size_t i = 0; i < all.size(); ++i) {
      gate::TestOutcome& outcome = *outcomes[i];
      all[i].errors = tail_of(all[i].errors, 1000);
      if (!all[i].ended()) all[i].seconds = limit;
      outcome.seconds += all[i].seconds;
      if (all[i].ended() || commands_.interrupted()) continue;
      const bool hung = limit >= long_enough;
      if (outcome.figures.empty()) outcome.state = hung ? TestState::hung : TestState::not_run;
      outcome.reason = hung ? fmt::format("not done after {:.1f} s; it usually takes {:g} s", limit, test.seconds)
                            : "the budget ended before it did";
    }
    return all;
  }

  void check_disk(const gate::Test& test, gate::TestOutcome& outcome) {
    std::vector<std::string> words{program_command().string(), "gate-test", "disk", "--folder", folder_.string()};
    if (request_.inject) words.push_back(*request_.inject->inject);
    const FinishedProcess done = run_children(test, {{words, inherited_variables()}}, {&outcome}).front();
    if (!done.ended()) return;
    outcome.reason = one_line(done.errors.empty() ? done.problem : done.errors);
    outcome.state = done.code == 0 ? TestState::passed : done.code == 1 ? TestState::wrong : TestState::broke;
  }

  void run_cases(const gate::Test& test, const Outcomes& outcomes) {
    std::vector<ProcessRequest> commands;
    std::vector<fs::path> folders;
    for (const gate::TestOutcome* outcome : outcomes) {
      folders.push_back(folder_ / fmt::format("run-{}", ++runs_));
      ProcessRequest& command = commands.emplace_back();
      command.words = {program_command().string(),
                       "run",
                       test.plan,
                       "--filter",
                       test.cases,
                       "--device",
                       test.device == "cuda" ? "cuda" : "cpu",
                       "--out",
                       folders.back().string()};
      command.variables = inherited_variables();
      const auto target = std::find_if(targets_.begin(), targets_.end(),
                                       [&](const gate::Target& one) { return one.device == outcome->device; });
      // A fault is injected on one GPU of all.
      if (request_.inject && (outcome->device.empty() || target + 1 == targets_.end()))
        command.words.insert(command.words.end(), {"--inject", *request_.inject->inject});
      if (target == targets_.end()) continue;
      command.variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
      command.variables["CUDA_VISIBLE_DEVICES"] = target->visible;
    }
    const std::vector<FinishedProcess> all = run_children(test, commands, outcomes);
    for (std::size_t i = 0; i < all.size(); ++i) {
      gate::TestOutcome& outcome = *outcomes[i];
      const bool first = outcome.figures.empty();
      std::error_code none;
      if (fs::exists(folders[i] / "records.jsonl", none)) read_records(test, folders[i], outcomes.size() > 1, outcome);
      if (!all[i].ended() || !first || outcome.state != TestState::not_run || !outcome.reason.empty()) continue;
      // Exit code 2: it was refused, as by a build without CUDA, and shows nothing of the GPU.
      const bool refused = test.device == "cuda" && all[i].code == static_cast<int>(ExitCode::usage);
      outcome.state = refused ? TestState::not_run : TestState::broke;
      outcome.reason = one_line(all[i].errors.empty() ? all[i].problem : all[i].errors);
    }
  }

  void read_records(const gate::Test& test, const fs::path& out, bool others, gate::TestOutcome& outcome) {
    std::vector<RunData> read = read_runs({out});
    // Judged like a gate, which says that it is a drill.
    for (Record& record : read.front().records)
      for (const std::string_view text : {flag::emulated_gpu, flag::described_machine})
        if (std::erase(record.flags, text) > 0) {
          record.comparable = true;
          drills_.emplace(text);
        }
    const RunSet runs(std::move(read), Injected::include);
    for (const Entry& entry : runs.entries()) {
      const Record& record = *entry.record;
      switch (record.status) {
        case Status::ok:
          if (outcome.state == TestState::not_run) outcome.state = TestState::passed;
          if (!record.metrics.empty()) outcome.value = record.metrics[0].value, outcome.unit = record.metrics[0].unit;
          break;
        case Status::skipped: outcome.reason = record.reason; break;
        case Status::failed:
          outcome.state = TestState::wrong;
          outcome.reason = fmt::format("{}: {}", record.key, why_wrong(record));
          break;
        case Status::error:
          outcome.state = record.failure->kind == FailureKind::timeout ? TestState::hung : TestState::broke;
          outcome.out_of_memory = record.failure->kind == FailureKind::out_of_memory;
          outcome.reason = one_line(record.reason);
          break;
      }
    }
    if (request_.floors && !test.slow.empty())
      if (std::string why =
              add_repetitions(runs, {*request_.floors, withheld_cpus_, others && test.alone}, outcome, floors_used_);
          !why.empty())
        floors_refused_ = ": " + why;
  }

  const GateRequest& request_;
  Children commands_;
  Clock::time_point stop_;
  fs::path folder_;
  int runs_ = 0;
  std::vector<gate::GpuHere> gpus_;
  double withheld_cpus_ = 0;
  gate::Allotment allotment_;
  std::vector<gate::Target> targets_;
  std::vector<const gate::Test*> planned_;
  double rest_ = 0;  // s that the planned tests take which have not begun
  gate::Evidence evidence_;
  std::set<std::string> floors_used_, drills_;  // drills_: flags of records
  std::string floors_refused_;                  // why the last floor that was for a record could not judge it
  GateAnswer answer_;
};

}  // namespace

GateAnswer run_gate(const GateRequest& request) { return Gate(request).run(); }

}  // namespace assay::cli
