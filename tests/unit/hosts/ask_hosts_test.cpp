// Hosts that answer, fail, print megabytes and never answer, by a script in place of the remote shell.
#include "harness/hosts/ask_hosts.h"
#include "harness/core/error.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace assay {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class AskHosts : public testing::Test {
 protected:
  // The script gets the host as $1 and the command as $2.
  void shell(const std::string& body) {
    const auto path = folder_.path() / "rsh";
    std::ofstream(path) << "#!/bin/sh\n" << body;
    ::chmod(path.c_str(), 0755);
    ::setenv("ASSAY_RSH", path.c_str(), 1);
  }
  ~AskHosts() override { ::unsetenv("ASSAY_RSH"); }
  static Allocation hosts(const std::vector<std::string>& names) {
    Allocation allocation;
    allocation.source = LaunchSource::hostfile;
    for (const auto& name : names) allocation.hosts.push_back({name, std::nullopt, "", false});
    return allocation;
  }
  // A process id that the script wrote.
  pid_t pid_in(const std::string& name) const {
    pid_t pid = -1;
    std::ifstream(folder_.path() / name) >> pid;
    return pid;
  }
  test::TemporaryFolder folder_;
};

TEST_F(AskHosts, EachAnswerIsItsOwn) {
  shell("echo \"$1 got it\"; echo oops >&2; [ $1 = bad ] && exit 3; exit 0");
  const auto answers = ask_hosts(hosts({"one", "bad", "two"}), {"env"}, 30);
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0].host, "one");
  EXPECT_EQ(answers[0].exit_code, 0);
  EXPECT_EQ(answers[0].out, "one got it\n");
  EXPECT_EQ(answers[1].exit_code, 3);
  EXPECT_EQ(answers[1].err, "oops");
  EXPECT_EQ(answers[2].out, "two got it\n");
}

TEST_F(AskHosts, MoreHostsThanAreAskedAtOnce) {
  shell("echo $1");
  std::vector<std::string> names;
  for (int i = 0; i < 150; ++i) names.push_back("n" + std::to_string(i));
  const auto answers = ask_hosts(hosts(names), {"env"}, 60);
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(answers[i].out, names[i] + "\n");
}

// No host answers before the last one was asked.
TEST_F(AskHosts, AllAtOnce) {
  const std::string go = (folder_.path() / "go").string();
  shell("[ $1 = n199 ] && : >" + go + "\nuntil [ -e " + go + " ]; do sleep 0.5; done\necho $1");
  std::vector<std::string> names;
  for (int i = 0; i < 200; ++i) names.push_back("n" + std::to_string(i));
  const auto answers = ask_hosts(hosts(names), {"env"}, 120, Asking::all_at_once);
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(answers[i].out, names[i] + "\n");
}

TEST_F(AskHosts, WhoIsNotAskedForLackOfFilesIsSaid) {
  shell("echo $1");
  const pid_t child = fork();
  if (child == 0) {
    const rlimit few{70, 70};
    setrlimit(RLIMIT_NOFILE, &few);
    const auto answers = ask_hosts(hosts({"a", "b", "c"}), {"env"}, 60, Asking::all_at_once);
    const bool right = answers[0].asked && answers[0].out == "a\n" && answers[1].out == "b\n" && !answers[2].asked &&
                       !answers[2].exit_code && answers[2].err.find("files") != std::string::npos;
    _exit(right ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(AskHosts, AnUnreachableHostSaysWhy) {
  shell("echo 'connect to host: No route to host' >&2; exit 255");
  const auto answers = ask_hosts(hosts({"gone"}), {"env"}, 30);
  EXPECT_FALSE(answers[0].exit_code);
  EXPECT_EQ(answers[0].err, "connect to host: No route to host");
}

// It ignores SIGTERM, and so does the child in a group of its own, which becomes an orphan.
TEST_F(AskHosts, AHostThatNeverAnswersIsGivenUpAndLeavesNothing) {
  const std::string folder = folder_.path().string();
  shell(
      "trap '' TERM\n[ $1 = quick ] && { echo here; exit 0; }\n"
      "setsid sh -c 'trap \"\" TERM; echo $$ >" +
      folder +
      "/orphan; while :; do sleep 1; done' &\n"
      "echo $$ >" +
      folder + "/shell; while :; do sleep 1; done\n");
  const auto begin = std::chrono::steady_clock::now();
  const auto answers = ask_hosts(hosts({"stuck", "quick"}), {"env"}, 1);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_FALSE(answers[0].exit_code);
  EXPECT_THAT(answers[0].err, HasSubstr("no answer within 1 s"));
  EXPECT_EQ(answers[1].out, "here\n");
  EXPECT_LT(took.count(), 60);
  for (const char* name : {"shell", "orphan"}) {
    ASSERT_GT(pid_in(name), 0) << name;
    EXPECT_NE(::kill(pid_in(name), 0), 0) << name;
  }
}

TEST_F(AskHosts, OutputIsBounded) {
  shell("if [ $1 = loud ]; then exec yes; fi; head -c 3000000 /dev/zero | tr '\\0' x");
  const auto answers = ask_hosts(hosts({"loud", "long"}), {"env"}, 60);
  EXPECT_FALSE(answers[0].exit_code);
  EXPECT_THAT(answers[0].err, HasSubstr("printed more than 16 MiB"));
  EXPECT_TRUE(answers[0].out.empty());
  EXPECT_EQ(answers[1].out.size(), 3'000'000U);
}

TEST_F(AskHosts, AKilledShellIsNoAnswer) {
  shell("echo half; kill -9 $$");
  const auto answers = ask_hosts(hosts({"one"}), {"env"}, 30);
  EXPECT_FALSE(answers[0].exit_code);
  EXPECT_THAT(answers[0].err, HasSubstr("SIGKILL"));
  EXPECT_TRUE(answers[0].out.empty());
}

TEST_F(AskHosts, HostsThatStartThemselvesCannotBeAsked) {
  Allocation allocation = hosts({"one"});
  allocation.source = LaunchSource::environment;
  allocation.origin = "ASSAY_SUPERVISOR=one:2900";
  EXPECT_THAT([&] { ask_hosts(allocation, {"env"}, 1); },
              ThrowsMessage<UsageError>(HasSubstr("ASSAY_SUPERVISOR=one:2900")));
}

TEST(AskedCommand, IsOneLineThatEndsItselfInTime) {
  const std::string line = asked_command("/bin/echo", {"env", "it's", "$HOME"}, "n1", 2.5);
  EXPECT_THAT(line, testing::StartsWith("exec sh -c '"));
  EXPECT_THAT(line, HasSubstr("-k 1 3"));
  FILE* pipe = ::popen(line.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char printed[64] = {};
  EXPECT_NE(::fgets(printed, sizeof printed, pipe), nullptr);
  EXPECT_EQ(::pclose(pipe), 0);
  EXPECT_STREQ(printed, "env it's $HOME\n");
}

}  // namespace
}  // namespace assay
