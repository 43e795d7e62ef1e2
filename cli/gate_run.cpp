// Runs a gate's tests, each in a process of its own, until the budget ends.
#include "cli/catalogue.h"
#include "cli/gate.h"
#include "cli/shell_command.h"
#include "harness/core/configs.h"
#include "harness/core/host.h"
#include "harness/core/program.h"
#include "harness/core/text.h"
#include "harness/gate/fault_machine.h"
#include "harness/hosts/process.h"
#include "harness/json/json.h"
#include "harness/machine/cpu_ticks.h"
#include "harness/record/flags.h"
#include "harness/run/run.h"
#include "reports/acceptance/judge.h"
#include "reports/acceptance/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
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

// One gate per host at a time, since two would disturb each other: a name that the kernel frees with this process, and
// of which no file is left.
class HostLock {
 public:
  HostLock() : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}
  ~HostLock() {
    if (fd_ >= 0) ::close(fd_);
  }
  HostLock(const HostLock&) = delete;
  HostLock& operator=(const HostLock&) = delete;

  bool take() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = "assay-gate-" + this_host().substr(0, 64);
    std::memcpy(address.sun_path + 1, name.data(), name.size());  // a zero first: in no folder
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), length) == 0;
  }

 private:
  int fd_;
};

// A folder that is removed by another process, which may get stuck on its file system.
class Workspace {
 public:
  Workspace() {
    std::error_code none;
    const fs::path folder = fs::temp_directory_path(none);
    std::string name = ((none ? fs::path("/tmp") : folder) / "assay-gate-XXXXXX").string();
    if (::mkdtemp(name.data()))
      path_ = name;
    else
      problem_ = fmt::format("no folder {}: {}", name, std::strerror(errno));
  }
  ~Workspace() {
    constexpr int max_tries = 150;
    if (path_.empty()) return;
    try {
      Output ignored;
      const pid_t pid = start_process({.words = {"/bin/rm", "-rf", "--", path_.string()},
                                       .variables = {},
                                       .output = ignored.writer(),
                                       .death_signal = SIGTERM});
      for (int i = 0; i < max_tries && ::waitpid(pid, nullptr, WNOHANG) != pid; ++i) ::usleep(2000);
    } catch (const Error&) {
    }
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  // Empty if there is none, and why.
  const fs::path& path() const { return path_; }
  const std::string& problem() const { return problem_; }

 private:
  fs::path path_;
  std::string problem_;
};

// "/metrics of KEY": what to call a figure.
std::string name_of_figure(const report::Floor& floor, const Record& record) {
  return fmt::format("{} of {}", floor.metric, record.key);
}

// CPUs that others may have used, or the hypervisor took.
std::optional<double> outside(const Record& record) {
  return record.outside_cpu ? std::optional(record.outside_cpu->cpus + record.outside_cpu->steal) : std::nullopt;
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
        commands_(max_seconds_to_die),
        // The rest is for killing, removing and printing.
        stop_(request.start + in_seconds(request.budget - std::min(0.7, 0.2 * request.budget))) {}

  GateAnswer run() {
    const fs::path memory = cache_folder() / "gate" / (this_host() + ".jsonl");
    const std::time_t now = std::time(nullptr);
    {
      const HostLock lock;
      if (wait_for(lock)) measure();
    }
    answer_.decision = gate::decide(evidence_, scope_, request_.catalogue);
    if (commands_.interrupted()) {
      answer_.notes.emplace_back("interrupted by a signal");
      answer_.decision.verdict = gate::Verdict::not_judged;
    }
    answer_.tests = evidence_.tests;
    answer_.past = gate::read_past(memory, now).text(gate::past_days);
    const auto verdict = answer_.decision.verdict;
    if (!request_.inject && (verdict == gate::Verdict::suspect || verdict == gate::Verdict::drain))
      remember(memory, now);
    answer_.seconds = seconds_since(request_.start);
    return std::move(answer_);
  }

 private:
  static constexpr double max_seconds_to_die = 0.2;

  double left() const { return std::chrono::duration<double>(stop_ - Clock::now()).count(); }

  void remember(const fs::path& memory, std::time_t now) {
    try {
      gate::remember(memory, now, answer_.decision);
    } catch (const Error& error) {
      answer_.notes.push_back(fmt::format("the verdict is not kept: {}", error.what()));
    }
  }

  bool wait_for(const HostLock& lock) {
    const Clock::time_point until = Clock::now() + in_seconds(request_.budget / 3);
    while (!lock.take()) {
      if (Clock::now() >= until || commands_.interrupted()) {
        answer_.notes.emplace_back("another gate runs on this host, for longer than a third of the budget");
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
    if (catalogue.choose(left(), 0).empty()) {
      const auto shortest =
          std::min_element(catalogue.tests.begin(), catalogue.tests.end(),
                           [](const gate::Test& a, const gate::Test& b) { return a.seconds < b.seconds; });
      answer_.notes.push_back(
          fmt::format("the budget of {:g} s is too small for any test: the shortest, {}, takes {:g} s", request_.budget,
                      shortest->name, shortest->seconds));
      return;
    }
    // A fault of one test, or of a machine's files, is looked for by that test alone.
    if (!request_.inject || injects("audit")) audit(catalogue.test("audit"));
    allot();
    for (const gate::Test* test : catalogue.choose(left(), allotment_.gpus.size()))
      if (test->name != "audit" && (!request_.inject || injects(test->name))) add_tests(*test);
    for (gate::TestOutcome& outcome : evidence_.tests) {
      if (outcome.test == "audit" || workspace.problem().empty()) continue;
      outcome.reason = workspace.problem();
      if (outcome.test == "disk") outcome.state = TestState::broke;
    }
    if (!request_.inject) leave_out_shared();
    for (gate::TestOutcome& outcome : evidence_.tests)
      if (outcome.reason.empty() && outcome.test != "audit") repeat(outcome);
    repeat_doubtful();
    if (request_.floors && floors_used_.empty() && !request_.inject)
      answer_.notes.push_back(fmt::format("no floor of {} judged a figure of this gate", request_.floors->file));
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
    } else if (request_.inject) {
      words.push_back(*request_.inject->inject);
    }
    const FinishedCommand done = run_child(test, words, variables, outcome);
    if (done.ended && done.code == 0) {
      try {
        read_audit(parse_untrusted(done.output));
        outcome.state = TestState::passed;
        evidence_.audited = true;
      } catch (const Error& error) {
        outcome.state = TestState::broke;
        outcome.reason = fmt::format("its answer cannot be read: {}", error.what());
      }
    } else if (done.ended) {
      outcome.state = TestState::broke;
      outcome.reason = one_line(done.errors.empty() ? done.problem : done.errors);
    }
    evidence_.tests.push_back(std::move(outcome));
  }

  void read_audit(const Json& json) {
    withheld_cpus_ = number_member(json, "/withheld_cpus").value_or(0);
    for (const Json& one : member(json, "/audit/problems"))
      evidence_.problems.push_back({text_member(one, "/id"), text_member(one, "/device"), text_member(one, "/seen"),
                                    text_member(one, "/meaning"), text_member(one, "/fix"),
                                    gate::severity_from(text_member(one, "/severity"))});
    for (const Json& one : member(json, "/gpus"))
      gpus_.push_back({text_member(one, "/pci"), text_member(one, "/uuid"), text_member(one, "/name")});
  }

  // CPUs that a quota kept from a case: those it had to do without, and those it was stopped on.
  double held_back(const Record& record) const {
    return withheld_cpus_ + (record.outside_cpu ? record.outside_cpu->throttled.value_or(0) : 0);
  }

  void allot() {
    const bool fake = request_.inject && *request_.inject->inject == "files";
    allotment_ = gate::find_allotment(request_.gpus, fake ? Variables() : variables_of_launcher(), gpus_);
    scope_ = allotment_.scope();
    for (const std::string& name : evidence_.audited ? allotment_.missing : std::vector<std::string>())
      evidence_.problems.push_back(
          {"gpu-not-there",
           "",
           fmt::format("GPU {} of {} is not among the {} here", name, allotment_.source, gpus_.size()),
           {},
           {},
           allotment_.certain ? gate::Severity::fault : gate::Severity::warning});
  }

  void add_tests(const gate::Test& test) {
    gate::TestOutcome outcome;
    outcome.test = test.name;
    if (test.device != "cuda") return evidence_.tests.push_back(std::move(outcome));
    for (const gate::GpuHere& gpu : allotment_.gpus) {
      outcome.device = gpu.pci;
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
    else if (allotment_.part(gpus_.size()))
      why = fmt::format("{} of the {} GPUs may be another job's", gpus_.size() - allotment_.gpus.size(), gpus_.size());
    else if (const double busy = lasting_busy_cpus(); busy >= max_busy_cpus)
      why = fmt::format("others use {:.1f} CPUs", busy);
    if (why.empty()) return;
    for (gate::TestOutcome& outcome : evidence_.tests)
      if (request_.catalogue.test(outcome.test).shared) outcome.reason = why;
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

  void repeat(gate::TestOutcome& outcome) {
    const gate::Test& test = request_.catalogue.test(outcome.test);
    if (commands_.interrupted()) return;
    if (outcome.figures.empty() && left() < test.seconds) {
      outcome.reason = "no time left in the budget";
      return;
    }
    if (test.plan.empty())
      check_disk(test, outcome);
    else
      run_cases(test, outcome);
  }

  // Figures that did not hold are measured again, as far apart as the budget allows, so that a short disturbance does
  // not spoil all.
  void repeat_doubtful() {
    const auto is_doubtful = [](const gate::TestOutcome& one) {
      return one.state == TestState::passed && std::any_of(one.figures.begin(), one.figures.end(), gate::doubtful);
    };
    constexpr int max_repetitions = 2 * static_cast<int>(gate::needed_repetitions);
    for (int done = 1; done < max_repetitions && !commands_.interrupted(); ++done) {
      double seconds = 0;
      bool open = false;  // a verdict that more repetitions may change
      for (const gate::TestOutcome& one : evidence_.tests) {
        if (!is_doubtful(one)) continue;
        seconds += one.seconds / done;
        open |= std::any_of(one.figures.begin(), one.figures.end(), [](const gate::Figure& figure) {
          const auto slow = gate::judge(figure);
          return gate::doubtful(figure) && (!slow || slow->severity != gate::Severity::fault);
        });
      }
      if (!open || left() < 1.2 * seconds) return;
      const int wanted = std::max(1, static_cast<int>(gate::needed_repetitions) - done);
      const double spare = left() - 1.2 * seconds * wanted;
      if (spare > 0) commands_.wait(Clock::now() + in_seconds(spare / (wanted + 1)));
      for (gate::TestOutcome& one : evidence_.tests)
        if (is_doubtful(one)) repeat(one);
    }
  }

  // Runs one child of a test; a child that did not end is noted in the outcome.
  FinishedCommand run_child(const gate::Test& test, const std::vector<std::string>& words, const Variables& variables,
                            gate::TestOutcome& outcome) {
    const double limit = std::min(left(), std::max(10.0, 15 * test.seconds));
    FinishedCommand done = commands_.run(words, variables, Clock::now() + in_seconds(limit));
    if (!done.ended) done.seconds = limit;
    outcome.seconds += done.seconds;
    if (done.ended || commands_.interrupted()) return done;
    const bool long_enough = limit >= 3 * test.seconds + 1;
    if (outcome.figures.empty()) outcome.state = long_enough ? TestState::hung : TestState::not_run;
    outcome.reason = long_enough ? fmt::format("not done after {:.1f} s; it usually takes {:g} s", limit, test.seconds)
                                 : "the budget ended before it did";
    return done;
  }

  void check_disk(const gate::Test& test, gate::TestOutcome& outcome) {
    std::vector<std::string> words{program_command().string(), "gate-test", "disk", "--folder", folder_.string()};
    if (request_.inject) words.push_back(*request_.inject->inject);
    const FinishedCommand done = run_child(test, words, inherited_variables(), outcome);
    if (!done.ended) return;
    outcome.reason = one_line(done.errors.empty() ? done.problem : done.errors);
    outcome.state = done.code == 0 ? TestState::passed : done.code == 1 ? TestState::wrong : TestState::broke;
  }

  void run_cases(const gate::Test& test, gate::TestOutcome& outcome) {
    const fs::path out = folder_ / fmt::format("run-{}", ++runs_);
    std::vector<std::string> words{program_command().string(),
                                   "run",
                                   test.plan,
                                   "--filter",
                                   test.cases,
                                   "--device",
                                   test.device == "cuda" ? "cuda" : "cpu",
                                   "--out",
                                   out.string()};
    if (request_.inject) words.insert(words.end(), {"--inject", *request_.inject->inject});
    Variables variables = inherited_variables();
    if (!outcome.device.empty()) {
      const auto gpu =
          std::find_if(gpus_.begin(), gpus_.end(), [&](const gate::GpuHere& one) { return one.pci == outcome.device; });
      variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
      variables["CUDA_VISIBLE_DEVICES"] = gpu->uuid.empty() ? std::to_string(gpu - gpus_.begin()) : gpu->uuid;
    }
    const FinishedCommand done = run_child(test, words, variables, outcome);
    const bool first = outcome.figures.empty();
    std::error_code none;
    if (fs::exists(out / "records.jsonl", none)) read_records(test, out, outcome);
    if (!done.ended || !first || outcome.state != TestState::not_run || !outcome.reason.empty()) return;
    outcome.state = TestState::broke;
    outcome.reason = one_line(done.errors.empty() ? done.problem : done.errors);
  }

  void read_records(const gate::Test& test, const fs::path& out, gate::TestOutcome& outcome) {
    const report::RunSet runs(read_runs({out}), report::Injected::include);
    for (const report::Entry& entry : runs.entries()) {
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
          outcome.state = flag::has(record.flags, flag::timed_out) ? TestState::hung : TestState::broke;
          outcome.reason = one_line(record.reason);
          break;
      }
    }
    if (request_.floors && !test.slow.empty()) judge_floors(runs, outcome);
  }

  void judge_floors(const report::RunSet& runs, gate::TestOutcome& outcome) {
    report::Floors floors = *request_.floors;
    // To a floor for more threads, the threads that a quota took away are a loss and no other measurement.
    if (withheld_cpus_ > 0)
      for (report::Floor& floor : floors.floors)
        for (const char* name : {"threads", "hash"}) floor.protocol.erase(name);
    const report::CheckResult checked = report::check(runs, floors, family_names());
    for (const report::FloorResult& result : checked.results) {
      for (const report::Judgement& one : result.records) {
        if (!one.value || !one.limit) continue;
        const Record& record = *one.entry.record;
        floors_used_.insert(result.floor->pointer);
        const std::string name = name_of_figure(*result.floor, record);
        auto figure = std::find_if(outcome.figures.begin(), outcome.figures.end(), [&](const gate::Figure& known) {
          return known.name == name && known.floor == *one.limit;
        });
        if (figure == outcome.figures.end())
          figure = outcome.figures.insert(figure, {name, result.floor->unit, *one.limit, {}});
        figure->repetitions.push_back({.value = *one.value,
                                       .range = one.range,
                                       .shortfall = report::shortfall(*one.value, result.floor->bound, *one.limit),
                                       .below = one.outcome == report::Outcome::fail,
                                       .outside = outside(record),
                                       .held_back = held_back(record),
                                       .slowed = record.samples.throttled && !record.samples.throttled->empty()});
      }
    }
  }

  const GateRequest& request_;
  ShellCommands commands_;
  Clock::time_point stop_;
  fs::path folder_;
  int runs_ = 0;
  std::vector<gate::GpuHere> gpus_;
  double withheld_cpus_ = 0;
  gate::Allotment allotment_;
  gate::Scope scope_;
  gate::Evidence evidence_;
  std::set<std::string> floors_used_;
  GateAnswer answer_;
};

}  // namespace

GateAnswer run_gate(const GateRequest& request) { return Gate(request).run(); }

}  // namespace assay::cli
