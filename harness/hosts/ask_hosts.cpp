#include "harness/hosts/ask_hosts.h"

#include "harness/core/error.h"
#include "harness/core/open_files.h"
#include "harness/core/program.h"
#include "harness/core/text.h"
#include "harness/hosts/agent_starter.h"
#include "harness/process/run.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <utility>

namespace assay {

namespace {

constexpr std::size_t max_at_once = 64;
constexpr std::size_t files_of_each = 3, other_files = 64;  // open: two pipes and the process
constexpr std::size_t stderr_bytes = 400;
constexpr int shell_failed = 255;  // ssh's code if it could not run the command
// From SIGTERM to SIGKILL: `timeout` passes the first on, and kills what ignores it after a second.
constexpr double grace_seconds = 2;

HostAnswer answer_of(FinishedProcess done, const std::string& host, bool by_shell, double timeout_seconds) {
  HostAnswer answer{host, std::nullopt, "", tail_of(done.errors, stderr_bytes)};
  std::string why_not = done.code ? "" : done.problem;
  if (done.stopped == Stopped::late) why_not = fmt::format("no answer within {:g} s", timeout_seconds);
  if (done.stopped == Stopped::too_long) why_not = fmt::format("printed more than {} MiB", max_answer_bytes >> 20);
  if (!why_not.empty()) {
    answer.err = answer.err.empty() ? why_not : fmt::format("{}: {}", why_not, one_line(answer.err));
  } else if (by_shell && done.code == shell_failed) {
    answer.err = answer.err.empty() ? "the remote shell failed" : one_line(answer.err);
  } else {
    answer.exit_code = done.code;
    answer.out = std::move(done.output);
  }
  return answer;
}

bool asked_by_shell(const Allocation& allocation, const AllocatedHost& host) {
  return !host.here && allocation.source != LaunchSource::slurm;
}

// The process that asks a host.
ProcessRun process_for(const Allocation& allocation, const AllocatedHost& host, const std::vector<std::string>& words,
                       double timeout_seconds) {
  const std::string binary = program_command().string();
  ProcessRun run;
  run.limit_seconds = timeout_seconds;
  run.grace_seconds = grace_seconds;
  run.max_output = max_answer_bytes;
  run.ends_beyond = true;
  ProcessRequest& request = run.process;
  request.death_signal = SIGTERM;  // so that a shell can end what it started
  request.variables = inherited_variables();
  if (asked_by_shell(allocation, host)) {
    request.words = remote_shell_words();
    if (!host.user.empty()) request.words.insert(request.words.end(), {"-l", host.user});
    request.words.insert(request.words.end(), {host.name, asked_command(binary, words, host.name, timeout_seconds)});
  } else if (host.here) {
    request.words = {binary};
    request.variables["ASSAY_HOST"] = host.name;
    // They tell which processes and GPUs are the job's; the variables of its step would make it a job of several hosts.
    const Variables all = variables_of_launcher();
    for (const char* name : {"SLURM_JOB_ID", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS"})
      if (const auto own = all.find(name); own != all.end()) request.variables.insert(*own);
    request.words.insert(request.words.end(), words.begin(), words.end());
  } else {
    const std::string srun = find_program("srun");
    if (srun.empty()) throw UsageError("a Slurm job of several nodes needs srun, which is not in PATH");
    // --overlap: this process may be inside a step already.
    request.words = {srun,         "--overlap", "--nodes",         "1",           "--ntasks", "1",
                     "--nodelist", host.name,   "--cpu-bind=none", "--export=ALL"};
    request.variables = variables_of_launcher();
    request.variables["ASSAY_HOST"] = host.name;
    request.words.push_back(binary);
    request.words.insert(request.words.end(), words.begin(), words.end());
  }
  return run;
}

}  // namespace

std::string asked_command(const std::string& binary, const std::vector<std::string>& words, const std::string& host,
                          double timeout_seconds) {
  std::string line = fmt::format("t=$(command -v timeout) && t=\"$t -k 1 {:.0f}\"; exec env ASSAY_HOST={} $t {}",
                                 std::ceil(timeout_seconds), shell_word(host), shell_word(binary));
  for (const std::string& word : words) line += " " + shell_word(word);
  return "exec sh -c " + shell_word(line);
}

std::vector<HostAnswer> ask_hosts(const Allocation& allocation, const std::vector<std::string>& words,
                                  double timeout_seconds, Asking how) {
  if (allocation.source == LaunchSource::environment)
    throw UsageError(
        fmt::format("{}: hosts that start themselves cannot be asked; name them in --hostfile", allocation.origin));
  adopt_orphans();  // what a given-up shell leaves becomes a child of this process, and is ended below
  std::vector<ProcessRun> runs;
  for (const AllocatedHost& host : allocation.hosts)
    runs.push_back(process_for(allocation, host, words, timeout_seconds));
  std::size_t at_once = max_at_once;
  if (how == Asking::all_at_once) {
    const std::size_t files = reserve_open_files(files_of_each * runs.size() + other_files);
    at_once = std::max<std::size_t>(1, (files - std::min(files, other_files)) / files_of_each);
    runs.resize(std::min(runs.size(), at_once));
  }
  std::vector<FinishedProcess> all = run_processes(runs, at_once);
  const bool given_up = !std::ranges::all_of(all, &FinishedProcess::ended);
  if (given_up) end_children(grace_seconds, [](pid_t, int) {});
  std::vector<HostAnswer> answers;
  for (std::size_t i = 0; i < allocation.hosts.size(); ++i) {
    const AllocatedHost& host = allocation.hosts[i];
    if (i >= all.size())
      answers.push_back({host.name, std::nullopt, "", "this process may not open files for more hosts", false});
    else
      answers.push_back(answer_of(std::move(all[i]), host.name, asked_by_shell(allocation, host), timeout_seconds));
  }
  return answers;
}

}  // namespace assay
