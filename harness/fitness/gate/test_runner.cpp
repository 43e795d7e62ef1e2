#include "harness/fitness/gate/test_runner.h"

#include "harness/core/configs.h"
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/fitness/gate/fault_machine.h"
#include "harness/fitness/gate/figures.h"
#include "harness/json/members.h"
#include "harness/record/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace assay::gate {

namespace fs = std::filesystem;

namespace {

std::string why_wrong(const Record& record) {
  for (const Check& check : record.checks)
    if (!check.passed) return one_line(fmt::format("{} {}", check.name, fmt::join(check.detail, ", ")));
  return one_line(record.reason);
}

bool late(const TrialResult& result) { return result.failure && result.failure->kind == FailureKind::timeout; }

}  // namespace

TestRunner::TestRunner(const Request& request, Trials& trials, Clock::time_point stop, fs::path folder)
    : request_(request), trials_(trials), stop_(stop), folder_(std::move(folder)) {}

double TestRunner::left() const { return std::chrono::duration<double>(stop_ - trials_.now()).count(); }

std::vector<TrialResult> TestRunner::run(const Test& test, std::vector<Trial> trials, const Outcomes& outcomes) {
  const double long_enough = 3 * test.seconds + 1;
  const double limit = std::min({left(), std::max(10.0, 15 * test.seconds), std::max(long_enough, left() - rest_)});
  for (Trial& trial : trials) trial.deadline = limit;
  std::vector<TrialResult> results = trials_.run(trials);
  for (std::size_t i = 0; i < results.size(); ++i) {
    TrialResult& result = results[i];
    TestOutcome& outcome = *outcomes[i];
    result.errors = one_line(tail_of(result.errors, 1000));
    outcome.seconds += late(result) ? limit : result.seconds;
    if (!late(result) || trials_.interrupted()) continue;
    const bool hung = limit >= long_enough;
    if (outcome.figures.empty()) outcome.state = hung ? TestState::hung : TestState::not_run;
    outcome.reason = hung ? fmt::format("not done after {:.1f} s; it usually takes {:g} s", limit, test.seconds)
                          : "the budget ended before it did";
  }
  return results;
}

std::optional<Inspection> TestRunner::audit(const Test& test, TestOutcome& outcome) {
  Trial trial;
  trial.command = {"gate-test", "audit"};
  if (!request_.expect.empty() && !request_.inject)
    trial.command.insert(trial.command.end(), {"--expect", request_.expect});
  if (request_.inject && *request_.inject->inject == "files") {
    const fs::path root = folder_ / "machine";
    fs::create_directory(root);
    write_machine(configs_dir() / "gate-faults.json", request_.inject->id, root);
    trial.environment["ASSAY_ROOT"] = root.string();
    trial.environment.erase("NCCL_IB_HCA");
  } else if (request_.inject && request_.inject->test == "audit") {
    trial.command.push_back(*request_.inject->inject);
  }
  const TrialResult result = run(test, {trial}, {&outcome}).front();
  if (late(result)) return std::nullopt;
  outcome.state = TestState::broke;
  outcome.reason = result.errors;
  if (result.code != 0) return std::nullopt;
  try {
    auto seen = read_text<Inspection>(result.output);
    outcome.state = TestState::passed;
    outcome.reason.clear();
    return seen;
  } catch (const Error& error) {
    outcome.reason = fmt::format("its answer cannot be read: {}", error.what());
    return std::nullopt;
  }
}

void TestRunner::measure(const Test& test, const Outcomes& outcomes, const std::vector<Target>& targets) {
  if (trials_.interrupted() || outcomes.empty()) return;
  if (outcomes.front()->figures.empty() && left() < test.seconds) {
    for (TestOutcome* one : outcomes) one->reason = "no time left in the budget";
    return;
  }
  if (test.plan.empty())
    check_disk(test, *outcomes.front());
  else
    run_cases(test, outcomes, targets);
}

void TestRunner::check_disk(const Test& test, TestOutcome& outcome) {
  Trial trial;
  trial.command = {"gate-test", "disk", "--folder", folder_.string()};
  if (request_.inject) trial.command.push_back(*request_.inject->inject);
  const TrialResult result = run(test, {trial}, {&outcome}).front();
  if (late(result)) return;
  outcome.reason = result.errors;
  outcome.state = result.code == 0 ? TestState::passed : result.code == 1 ? TestState::wrong : TestState::broke;
}

void TestRunner::run_cases(const Test& test, const Outcomes& outcomes, const std::vector<Target>& targets) {
  std::vector<Trial> trials;
  for (const TestOutcome* outcome : outcomes) {
    Trial& trial = trials.emplace_back();
    trial.plan = {test.plan};
    trial.filter = test.cases;
    trial.device = test.device == "cuda" ? "cuda" : "cpu";
    trial.out = folder_ / fmt::format("run-{}", ++runs_);
    for (const auto& [name, value] : computing_) trial.environment[name] = value;
    const auto target = std::ranges::find(targets, outcome->device, &Target::device);
    // A fault is injected on one GPU of all.
    if (request_.inject && (outcome->device.empty() || target + 1 == targets.end()))
      trial.inject = *request_.inject->inject;
    if (target == targets.end()) continue;
    trial.environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
    trial.environment["CUDA_VISIBLE_DEVICES"] = target->visible;
  }
  std::vector<TrialResult> results = run(test, std::move(trials), outcomes);
  for (std::size_t i = 0; i < results.size(); ++i) {
    TrialResult& result = results[i];
    TestOutcome& outcome = *outcomes[i];
    const bool first = outcome.figures.empty();
    if (result.run) read_records(test, std::move(*result.run), outcomes.size() > 1, outcome);
    if (late(result) || !first || outcome.state != TestState::not_run || !outcome.reason.empty()) continue;
    // A build without CUDA refuses it, which shows nothing of the GPU.
    const bool refused = test.device == "cuda" && result.failure && result.failure->kind == FailureKind::refused;
    outcome.state = refused ? TestState::not_run : TestState::broke;
    outcome.reason = result.errors;
  }
}

void TestRunner::read_records(const Test& test, RunData run, bool others, TestOutcome& outcome) {
  // Judged like a gate, which says that it is a drill.
  for (Record& record : run.records)
    for (const std::string_view text : {flag::emulated_gpu, flag::described_machine})
      if (std::erase(record.flags, text) > 0) {
        record.comparable = true;
        drills_.emplace(text);
      }
  std::vector<RunData> all;
  all.push_back(std::move(run));
  const RunSet runs(std::move(all), Injected::include);
  for (const Entry& entry : runs.entries()) {
    const Record& record = *entry.record;
    const auto kind = record.failure ? record.failure->kind : FailureKind::exception;
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
        outcome.state = kind == FailureKind::timeout ? TestState::hung : TestState::broke;
        outcome.out_of_memory = kind == FailureKind::out_of_memory;
        outcome.reason = one_line(record.reason);
        break;
    }
  }
  if (!request_.floors || test.slow.empty()) return;
  const std::string why = add_repetitions(
      runs, {*request_.floors, request_.families, withheld_cpus_, others && test.alone}, outcome, floors_used_);
  if (!why.empty()) floors_refused_ = ": " + why;
}

}  // namespace assay::gate
