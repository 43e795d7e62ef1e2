// Two shell commands as sides, with a runner that runs nothing.
#include "harness/ab/commands.h"

#include "harness/core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

namespace assay::ab {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<Figure> printed(const CommandOutput& output, char side) {
  if (output.text.empty()) throw UsageError(std::string(1, side) + ": nothing");
  return {{"time", std::stod(std::string(output.text)), "s", Better::lower}};
}

const Commands commands{"ab", "./a", "./b", printed};

// Answers as if each command printed a figure, until what is queued for it.
struct Fake {
  std::vector<ProcessRun> seen;
  std::deque<FinishedProcess> answers;

  Runner runner() {
    return [this](const ProcessRun& run) {
      seen.push_back(run);
      FinishedProcess done;
      done.output = run.process.words.back() == "./a" ? "1" : "2";
      if (!answers.empty()) {
        done = answers.front();
        answers.pop_front();
      }
      return done;
    };
  }
};

FinishedProcess printing(const std::string& text) {
  FinishedProcess done;
  done.output = text;
  return done;
}

TEST(RunCommands, RunsEachInAShellUntilTheAnswer) {
  Fake fake;
  const Result result = run_commands(commands, {}, fake.runner());
  EXPECT_EQ(result.all.verdict, Direction::slower);
  EXPECT_EQ(result.cases.at(0).a, 1);
  EXPECT_EQ(result.cases.at(0).b, 2);
  ASSERT_GT(fake.seen.size(), 2u);
  EXPECT_THAT(fake.seen[0].process.words, ElementsAre("/bin/sh", "-c", "./a"));
  EXPECT_THAT(fake.seen[1].process.words, ElementsAre("/bin/sh", "-c", "./b"));
  EXPECT_LE(fake.seen[0].limit_seconds, Options().budget);
}

TEST(RunCommands, ACommandThatFailsIsNamedWithItsLastLines) {
  Fake fake;
  FinishedProcess failed;
  failed.problem = "ended with code 3";
  failed.errors = "first\nno such file\n";
  fake.answers = {printing("1"), failed};
  try {
    run_commands(commands, {}, fake.runner());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::broken);
    EXPECT_THAT(error.what(), AllOf(StartsWith("ab: B ended with code 3: ./b\n"), HasSubstr("no such file")));
  }
}

TEST(RunCommands, AFigureMissingAtFirstIsTheUsersAndLaterTheCommands) {
  for (const auto& [before, code] : {std::pair(1, ExitCode::usage), std::pair(3, ExitCode::broken)}) {
    Fake fake;
    for (int i = 0; i < before; ++i) fake.answers.push_back(printing("1"));
    fake.answers.push_back(printing(""));
    try {
      run_commands(commands, {}, fake.runner());
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_THAT(error.what(), AllOf(StartsWith("ab: "), HasSubstr(": nothing")));
    }
  }
}

TEST(RunCommands, WhatIsStoppedIsNoPair) {
  Fake fake;
  FinishedProcess stopped;
  stopped.stopped = Stopped::interrupted;
  fake.answers = {printing("1"), printing("1"), printing("1"), stopped};
  const Result result = run_commands(commands, {}, fake.runner());
  EXPECT_EQ(result.all.verdict, Direction::unknown);
  EXPECT_EQ(result.all.pairs, 0u);
  EXPECT_NE(result.ended, Ended::decided);
}

}  // namespace
}  // namespace assay::ab
