#include "harness/run/trial.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/program.h"
#include "harness/json/members.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <system_error>
#include <utility>

namespace assay {

namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t max_ended_bytes = std::uintmax_t{16} << 20;
constexpr std::size_t max_output = std::size_t{1} << 30;

fs::path ended_file(const Trial& trial) { return trial.out.string() + ".ended.json"; }

bool is_there(const fs::path& path) {
  std::error_code none;
  return fs::exists(path, none);
}

std::optional<Failure> failure_of(const FinishedProcess& process) {
  if (!process.ended()) return Failure{.kind = FailureKind::timeout};
  if (!process.code) return Failure{.kind = FailureKind::crashed};
  switch (static_cast<ExitCode>(*process.code)) {
    case ExitCode::ok:
    case ExitCode::failed:
    case ExitCode::no_data:
    case ExitCode::broken: return std::nullopt;
    case ExitCode::usage: return Failure{.kind = FailureKind::refused};
  }
  return Failure{.kind = FailureKind::crashed};
}

TrialResult result_of(const Trial& trial, FinishedProcess process) {
  TrialResult result;
  result.failure = failure_of(process);
  result.code = process.code;
  result.seconds = process.seconds;
  result.output = std::move(process.output);
  result.errors = process.errors.empty() ? std::move(process.problem) : std::move(process.errors);
  if (trial.out.empty()) return result;
  if (const fs::path ended = ended_file(trial); is_there(ended)) {
    result.ended = read_text<Ended>(read_whole(ended, max_ended_bytes));
    fs::remove(ended);
  }
  if (!is_there(trial.out / "run.json")) return result;
  result.run = std::move(read_runs({trial.out}).front());
  if (!result.ended) result.ended = result.run->ended;
  const auto finished = result.run->run.find("finished");
  result.complete = finished != result.run->run.end() && finished->is_string();
  return result;
}

}  // namespace

std::vector<std::string> words_of(const Trial& trial, bool resumed) {
  if (!trial.command.empty()) return trial.command;
  std::vector<std::string> words{"run"};
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {flag, value});
  };
  if (resumed) {
    add("--resume", trial.out.string());
  } else {
    words.insert(words.end(), trial.plan.begin(), trial.plan.end());
    add("--filter", trial.filter);
    add("--device", trial.device);
    add("--out", trial.out.string());
    if (trial.ranks) add("--ranks", std::to_string(*trial.ranks));
    if (trial.each_host) words.emplace_back("--each-host");
    add("--inject", trial.inject);
  }
  add("--hostfile", trial.hostfile);
  add("--hosts", trial.hosts);
  add("--ended", ended_file(trial).string());
  return words;
}

std::vector<TrialResult> ChildTrials::run(const std::vector<Trial>& trials) {
  std::vector<ProcessRun> runs;
  std::deque<Descriptor> logs;
  for (const Trial& trial : trials) {
    ProcessRun& run = runs.emplace_back();
    run.process.words = words_of(trial, !trial.out.empty() && is_there(trial.out / "run.json"));
    run.process.words.insert(run.process.words.begin(), program_command().string());
    run.process.variables = trial.environment;
    if (trial.grace_seconds > 0) run.process.death_signal = SIGTERM;  // it ends its own processes
    run.limit_seconds = trial.deadline;
    run.grace_seconds = trial.grace_seconds;
    run.max_output = max_output;
    run.on_errors = trial.on_errors;
    if (trial.log.empty()) continue;
    const int file = ::open(trial.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file < 0) throw Error(fmt::format("{}: {}", trial.log.string(), std::strerror(errno)));
    run.process.output = logs.emplace_back(file);
  }
  std::vector<FinishedProcess> finished = children_.run_all(runs);
  std::vector<TrialResult> results;
  for (std::size_t i = 0; i < trials.size(); ++i) results.push_back(result_of(trials[i], std::move(finished[i])));
  return results;
}

}  // namespace assay
