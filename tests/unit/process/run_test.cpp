// Programs run to their end, by /bin/sh: what they print, and how each of them is ended.
#include "harness/process/run.h"

#include "harness/core/error.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace assay {
namespace {

using testing::HasSubstr;

ProcessRun shell(const std::string& script) {
  ProcessRun run;
  run.process.words = {"/bin/sh", "-c", script};
  run.process.variables = {{"PATH", "/usr/bin:/bin"}};
  return run;
}

std::size_t descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

bool has_children() { return ::waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD; }

bool is_dead(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string word, state;
  return !(file >> word >> word >> state) || state == "Z" || state == "X";
}

// Prints the process id of a descendant in a session of its own, and ends.
std::string leave_one_behind(const std::filesystem::path& mark) {
  return "setsid sh -c 'echo $$; : >" + mark.string() + "; exec sleep 1000' & while [ ! -e " + mark.string() +
         " ]; do sleep 0.01; done";
}

// Checks that a test leaves nothing: no zombie and no descriptor.
class RunProcess : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_FALSE(has_children());
    EXPECT_EQ(descriptors(), before_);
  }
  std::size_t before_ = descriptors();
};

TEST_F(RunProcess, BothStreamsAreReadApart) {
  const FinishedProcess done = run_process(shell("echo out; echo oops >&2; echo more"));
  EXPECT_TRUE(done.ended());
  EXPECT_EQ(done.code, 0);
  EXPECT_EQ(done.problem, "");
  EXPECT_EQ(done.output, "out\nmore\n");
  EXPECT_EQ(done.errors, "oops\n");
}

TEST_F(RunProcess, MergedStreamsKeepTheirOrder) {
  ProcessRun run = shell("echo 1; echo 2 >&2; echo 3");
  run.merged = true;
  EXPECT_EQ(run_process(run).output, "1\n2\n3\n");
}

TEST_F(RunProcess, ItsEnvironmentAndInputAreThoseOfTheRequest) {
  ::setenv("ASSAY_TEST_VARIABLE", "of the parent", 1);
  ProcessRun run = shell("cat; echo $ASSAY_TEST_VARIABLE$own");
  run.process.variables["own"] = "own";
  EXPECT_EQ(run_process(run).output, "own\n");
  ::unsetenv("ASSAY_TEST_VARIABLE");
}

TEST_F(RunProcess, MoreThanAPipeHoldsIsReadWhole) {
  const FinishedProcess done = run_process(shell("head -c 3000000 /dev/zero | tr '\\0' x; echo >&2"));
  EXPECT_TRUE(done.whole);
  EXPECT_EQ(done.output.size(), 3'000'000U);
}

TEST_F(RunProcess, SinksGetWhatComes) {
  ProcessRun run = shell("head -c 1000000 /dev/zero; echo oops >&2");
  std::size_t bytes = 0;
  std::string errors;
  run.on_output = [&](std::string_view text) { bytes += text.size(); };
  run.on_errors = [&](std::string_view text) { errors += text; };
  const FinishedProcess done = run_process(run);
  EXPECT_EQ(bytes, 1'000'000U);
  EXPECT_EQ(errors, "oops\n");
  EXPECT_TRUE(done.output.empty());
  EXPECT_EQ(done.errors, "oops\n");
}

TEST_F(RunProcess, ATailIsKeptOfALongerOutput) {
  ProcessRun run = shell("head -c 500000 /dev/zero | tr '\\0' x; echo the end");
  run.max_output = 400'000;
  const FinishedProcess done = run_process(run);
  EXPECT_TRUE(done.ended());
  EXPECT_EQ(done.code, 0);
  EXPECT_FALSE(done.whole);
  EXPECT_LE(done.output.size(), 400'000U);
  EXPECT_THAT(done.output, testing::EndsWith("xthe end\n"));
}

TEST_F(RunProcess, ALongerOutputMayEndIt) {
  ProcessRun run = shell("exec yes");
  run.max_output = 100'000;
  run.ends_beyond = true;
  const FinishedProcess done = run_process(run);
  EXPECT_EQ(done.stopped, Stopped::too_long);
  EXPECT_FALSE(done.whole);
  EXPECT_FALSE(done.code);
}

TEST_F(RunProcess, AnOutputThatIsTooLongCountsEvenIfItsEndIsReadLast) {
  ProcessRun run = shell("head -c 50000 /dev/zero");
  run.max_output = 40'000;
  run.ends_beyond = true;
  EXPECT_EQ(run_process(run).stopped, Stopped::too_long);
}

TEST_F(RunProcess, TheLimitEndsIt) {
  ProcessRun run = shell("exec sleep 1000");
  run.limit_seconds = 0.1;
  const FinishedProcess done = run_process(run);
  EXPECT_EQ(done.stopped, Stopped::late);
  EXPECT_FALSE(done.code);
  EXPECT_EQ(done.problem, "");
}

TEST_F(RunProcess, ALimitThatIsOverEndsItAtOnce) {
  ProcessRun run = shell("exec sleep 1000");
  run.limit_seconds = -1;
  EXPECT_EQ(run_process(run).stopped, Stopped::late);
}

// Is ended for its output, which it prints once it is ready.
ProcessRun ended_when_ready(const std::string& trap) {
  ProcessRun run = shell(trap + "echo $$ >&2; head -c 2000 /dev/zero; while :; do sleep 0.01; done");
  run.max_output = 1000;
  run.ends_beyond = true;
  return run;
}

TEST_F(RunProcess, SigtermComesFirst) {
  ProcessRun run = ended_when_ready("trap 'echo asked >&2; exit 3' TERM; ");
  run.grace_seconds = 1000;
  const FinishedProcess done = run_process(run);
  EXPECT_EQ(done.stopped, Stopped::too_long);
  EXPECT_FALSE(done.code);
  EXPECT_THAT(done.errors, testing::EndsWith("\nasked\n"));
}

TEST_F(RunProcess, SigkillEndsWhatIgnoresSigterm) {
  ProcessRun run = ended_when_ready("trap '' TERM; ");
  run.grace_seconds = 0.1;
  const FinishedProcess done = run_process(run);
  EXPECT_EQ(done.stopped, Stopped::too_long);
  EXPECT_NE(::kill(std::stoi(done.errors), 0), 0);
}

TEST_F(RunProcess, WhatItLeavesInItsGroupIsKilled) {
  const FinishedProcess done = run_process(shell("sleep 1000 & echo $!"));
  EXPECT_EQ(done.code, 0);
  const pid_t left = std::stoi(done.output);
  // An orphan that nobody may reap.
  for (int i = 0; i < 1000 && !is_dead(left); ++i) ::usleep(10'000);
  EXPECT_TRUE(is_dead(left));
}

TEST_F(RunProcess, ADescendantThatHoldsThePipeIsNotWaitedFor) {
  const test::TemporaryFolder folder;
  const FinishedProcess done = run_process(shell(leave_one_behind(folder.path() / "left")));
  EXPECT_EQ(done.code, 0);
  ::kill(std::stoi(done.output), SIGKILL);
}

TEST_F(RunProcess, ItsExitCodeIsKept) {
  const FinishedProcess done = run_process(shell("exit 3"));
  EXPECT_TRUE(done.ended());
  EXPECT_EQ(done.code, 3);
  EXPECT_EQ(done.signal, 0);
  EXPECT_EQ(done.problem, "ended with code 3");
}

TEST_F(RunProcess, ASignalThatItDiesOfIsNamed) {
  const FinishedProcess done = run_process(shell("kill -SEGV $$"));
  EXPECT_TRUE(done.ended());
  EXPECT_FALSE(done.code);
  EXPECT_EQ(done.signal, SIGSEGV);
  EXPECT_EQ(done.problem, "killed by SIGSEGV (signal 11)");
}

TEST_F(RunProcess, AMissingProgramSaysSo) {
  ProcessRun run;
  run.process.words = {"/no/such/program"};
  const FinishedProcess done = run_process(run);
  EXPECT_EQ(done.code, 127);
  EXPECT_EQ(done.errors, "cannot be executed\n");
}

TEST_F(RunProcess, AnIgnoredSigchldLosesTheCodeButNotTheEnd) {
  std::signal(SIGCHLD, SIG_IGN);
  const FinishedProcess done = run_process(shell("echo out"));
  std::signal(SIGCHLD, SIG_DFL);
  EXPECT_TRUE(done.ended());
  EXPECT_EQ(done.output, "out\n");
  EXPECT_FALSE(done.code);
  EXPECT_THAT(done.problem, HasSubstr("exit code is lost"));
}

TEST_F(RunProcess, AThrowingSinkLeavesNothing) {
  ProcessRun run = shell("echo out; exec sleep 1000");
  run.on_output = [](std::string_view) { throw Error("full"); };
  EXPECT_THROW(run_process(run), Error);
}

TEST_F(RunProcess, SeveralKeepTheirOrderBeyondWhatRunsAtOnce) {
  std::vector<ProcessRun> runs;
  for (int i = 0; i < 20; ++i)
    runs.push_back(shell("sleep 0.0" + std::to_string(9 - i % 10) + "; echo " + std::to_string(i)));
  const std::vector<FinishedProcess> all = run_processes(runs, 3);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)].output, std::to_string(i) + "\n");
}

TEST_F(RunProcess, OneThatIsLateDoesNotEndTheOthers) {
  std::vector<ProcessRun> runs{shell("exec sleep 1000"), shell("sleep 0.3; echo out")};
  runs[0].limit_seconds = 0.1;
  const std::vector<FinishedProcess> all = run_processes(runs);
  EXPECT_EQ(all[0].stopped, Stopped::late);
  EXPECT_EQ(all[1].output, "out\n");
}

using WithChildren = RunProcess;

TEST_F(WithChildren, EverythingThatIsLeftIsKilled) {
  const test::TemporaryFolder folder;
  Children children("the test");
  const FinishedProcess done = children.run(shell(leave_one_behind(folder.path() / "left")));
  EXPECT_EQ(done.code, 0);
  EXPECT_NE(::kill(std::stoi(done.output), 0), 0);
}

TEST_F(WithChildren, OneThatIsEndedDoesNotEndTheOthers) {
  Children children("the test");
  const std::vector<FinishedProcess> all =
      children.run_all({ended_when_ready("trap '' TERM; "), shell("sleep 0.1; exit 4")});
  EXPECT_EQ(all[0].stopped, Stopped::too_long);
  EXPECT_NE(::kill(std::stoi(all[0].errors), 0), 0);
  EXPECT_EQ(all[1].code, 4);
  EXPECT_FALSE(children.interrupted());
}

TEST_F(WithChildren, ASignalEndsThemAndIsKept) {
  Children children("the test");
  testing::internal::CaptureStderr();
  const FinishedProcess done = children.run(shell("echo $$; kill -TERM $PPID; exec sleep 1000"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "assay: interrupted by SIGTERM; ending the test\n");
  EXPECT_EQ(done.stopped, Stopped::interrupted);
  EXPECT_NE(::kill(std::stoi(done.output), 0), 0);
  EXPECT_TRUE(children.interrupted());
  // Whatever comes then ends at once.
  EXPECT_EQ(children.run(shell("exec sleep 1000")).stopped, Stopped::interrupted);
  children.wait(Clock::now() + std::chrono::hours(1));
}

TEST_F(WithChildren, AfterASignalAProcessMayEndInOrder) {
  Children children("the test");
  ProcessRun run = shell("trap 'echo in order; exit 0' TERM; kill -TERM $PPID; while :; do sleep 0.01; done");
  run.grace_seconds = 1000;
  testing::internal::CaptureStderr();
  const FinishedProcess done = children.run(run);
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(done.stopped, Stopped::interrupted);
  EXPECT_EQ(done.output, "in order\n");
}

TEST_F(WithChildren, IdleIsCalledWhileAProcessIsSilent) {
  const test::TemporaryFolder folder;
  const std::string mark = (folder.path() / "mark").string();
  int calls = 0;
  Children children("the test", 5, [&] {
    if (++calls == 2) std::ofstream(mark) << "go on";
  });
  ProcessRun run = shell("while [ ! -e " + mark + " ]; do sleep 0.01; done");
  run.limit_seconds = 50;  // without it, the loop wakes once a minute
  EXPECT_EQ(children.run(run).code, 0);
}

}  // namespace
}  // namespace assay
