// Functions that a child process is asked: they answer, throw, die or hang.
#include "harness/process/ask.h"

#include "harness/core/error.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>

namespace assay {
namespace {

std::string hang() {
  for (;;) ::pause();
}

class AskChild : public testing::Test {
 protected:
  void TearDown() override { EXPECT_TRUE(::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD); }
};

TEST_F(AskChild, ItsAnswerIsWhatTheFunctionReturns) {
  const std::string with_zero("13.1\0\n", 6);
  const ChildAnswer answer = ask_child([&] { return with_zero; }, 60);
  EXPECT_EQ(answer.text, with_zero);
  EXPECT_EQ(answer.problem, "");
}

TEST_F(AskChild, NothingIsAnAnswer) {
  EXPECT_EQ(ask_child([] { return std::string(); }, 60).text, "");
}

TEST_F(AskChild, MuchIsReadWhole) {
  const auto much = [] { return std::string(5'000'000, 'x'); };
  EXPECT_EQ(ask_child(much, 60).text, much());
}

TEST_F(AskChild, TheProcessIsAnother) {
  int here = 0;
  EXPECT_NE(ask_child([&] { return here = 1, std::to_string(::getpid()); }, 60).text, std::to_string(::getpid()));
  EXPECT_EQ(here, 0);
}

TEST_F(AskChild, WhatItThrowsIsTheProblem) {
  const ChildAnswer answer = ask_child([]() -> std::string { throw Error("no such library"); }, 60);
  EXPECT_FALSE(answer.text);
  EXPECT_TRUE(answer.threw);
  EXPECT_EQ(answer.problem, "no such library");
}

TEST_F(AskChild, ADeathIsNamed) {
  const ChildAnswer answer = ask_child([] { return ::raise(SIGKILL), std::string("never"); }, 60);
  EXPECT_FALSE(answer.text);
  EXPECT_FALSE(answer.late || answer.threw);
  EXPECT_EQ(answer.signal, SIGKILL);
  EXPECT_EQ(answer.problem, "killed by SIGKILL (signal 9)");
}

TEST_F(AskChild, AnEndWithoutAnAnswerIsNoAnswer) {
  EXPECT_EQ(ask_child([]() -> std::string { ::_exit(3); }, 60).problem, "ended with code 3");
  const ChildAnswer answer = ask_child([]() -> std::string { ::_exit(0); }, 60);
  EXPECT_FALSE(answer.text);
  EXPECT_EQ(answer.problem, "ended without an answer");
}

TEST_F(AskChild, OneThatHangsIsKilled) {
  const ChildAnswer answer = ask_child(hang, 0.05);
  EXPECT_FALSE(answer.text);
  EXPECT_TRUE(answer.late);
  EXPECT_EQ(answer.problem, "no answer within 0.05 s");
}

TEST_F(AskChild, AnAnswerCountsEvenIfTheChildThenDies) {
  const auto answer = [] {
    std::atexit([] { ::raise(SIGKILL); });
    return std::string("in time");
  };
  EXPECT_EQ(ask_child(answer, 60, ExitHandlers::run).text, "in time");
}

TEST_F(AskChild, ExitHandlersRunOnlyIfAsked) {
  const auto with_handler = [] {
    std::atexit([] { ::_exit(::write(2, "handler\n", 8) == 8 ? 0 : 1); });
    return std::string("text");
  };
  testing::internal::CaptureStderr();
  EXPECT_EQ(ask_child(with_handler, 60).text, "text");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  EXPECT_EQ(ask_child(with_handler, 60, ExitHandlers::run).text, "text");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "handler\n");
}

TEST_F(AskChild, OneOfSeveralThatDiesDoesNotHarmTheOthers) {
  const std::vector<ChildAnswer> answers =
      ask_children({[] { return std::string("a"); }, [] { return ::raise(SIGKILL), std::string("never"); },
                    [] { return std::string("b"); }},
                   60);
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0].text, "a");
  EXPECT_EQ(answers[1].signal, SIGKILL);
  EXPECT_EQ(answers[2].text, "b");
}

TEST_F(AskChild, MoreThanRunAtOnceKeepTheirOrder) {
  std::vector<std::function<std::string()>> all;
  for (int i = 0; i < 200; ++i) all.emplace_back([i] { return std::to_string(i); });
  const std::vector<ChildAnswer> answers = ask_children(all, 60);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(answers[static_cast<std::size_t>(i)].text, std::to_string(i));
}

}  // namespace
}  // namespace assay
