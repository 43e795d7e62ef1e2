// What hooks send, and what the command line of a job tells.
#include "harness/watch/ranks.h"
#include "harness/core/error.h"
#include "harness/watch/python.h"
#include "harness/watch/record.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <limits>

namespace assay::watch {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;

TEST(WatchRanks, AHelloIsReadAsFarAsItGoes) {
  const auto info = rank_info_from(R"({"pid": 42, "rank": null, "world": 4, "threads": 8, "cuda": true, "torch": "2.9",
      "loaders": [{"workers": 2, "batch": 16}, {"workers": 1, "batch": 4}], "absent": {"backward": "no such thing"}})",
                                   3);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->pid, 42);
  EXPECT_EQ(info->rank, 3);  // that it does not say
  EXPECT_EQ(info->world, 4);
  EXPECT_TRUE(info->cuda);
  EXPECT_EQ(info->workers, 2);
  EXPECT_EQ(info->absent.at("backward"), "no such thing");
  for (const char* bad : {"", "[]", "{}", "{\"pid\": \"x\"}", "{\"pid\": 1", "null"})
    EXPECT_FALSE(rank_info_from(bad, 0)) << bad;
}

TEST(WatchRanks, AStepHasFiniteNumbers) {
  const std::array<double, step_numbers> numbers{10,   0.1,          0.01, 0.04, 0.01,  0.02, 0,
                                                 0.08, std::nan(""), 1,    1,    0.002, 3};
  const auto step = step_from(numbers);
  ASSERT_TRUE(step);
  EXPECT_DOUBLE_EQ(step->forward(), 0.1 - 0.08);
  EXPECT_FALSE(step->ready);
  EXPECT_EQ(step->syncs, 3);
  for (const std::size_t i : {0u, 1u, 3u, 10u, 12u})
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(), 1e300}) {
      auto changed = numbers;
      changed[i] = bad;
      EXPECT_FALSE(step_from(changed)) << i;
    }
  auto backwards = numbers;
  backwards[1] = -0.1;
  EXPECT_FALSE(step_from(backwards));
}

TEST(WatchRanks, AStackIsOneLineWithoutTheHook) {
  const std::string written =
      "Current thread 0x00007f00 (most recent call first):\n"
      "  File \"/usr/lib/python3/socket.py\", line 12 in recv\n"
      "  File \"/opt/assay/watch/assay_watch.py\", line 210 in timed\n"
      "  File \"/home/u/my job/train.py\", line 99 in <module>\n";
  EXPECT_EQ(one_line_stack(written), "recv (socket.py:12) < <module> (train.py:99)");
  EXPECT_EQ(one_line_stack("torn"), "");
}

TEST(WatchRanks, ThingsThatAreNoHooksMemoryAreRefused) {
  Descriptor nothing(-1);
  EXPECT_THROW(Rank({}, Descriptor(-1), Descriptor(-1), Descriptor(-1)), Error);
}

TEST(WatchJob, OptionsOfPythonThatSkipTheHook) {
  for (const Words& words : {Words{"python3", "-S", "a.py"},
                             {"/usr/bin/python3.12", "-uI", "a.py"},
                             {"env", "A=1", "python", "-E", "-m", "x"}})
    EXPECT_THAT(why_not_hooked(words), HasSubstr("skips the hook")) << words.front();
  for (const Words& words : {Words{"python3", "a.py", "-S"},
                             {"python3", "-m", "x", "-I"},
                             {"python3", "-W", "Ignore", "a.py"},
                             {"ls", "-S"},
                             {"pythonic", "-S"},
                             {"python3", "-c", "E"},
                             {"env"}})
    EXPECT_EQ(why_not_hooked(words), "") << words.front();
}

TEST(WatchJob, TheHooksComeFirstInPythonsPath) {
  ::setenv("PYTHONPATH", "/mine", 1);
  ::setenv("ASSAY_WATCH_TRACES", "/of/a/watch/around/this", 1);
  EXPECT_EQ(variables_with_hook("/hook", "address", "").at("PYTHONPATH"), "/hook:/mine");
  EXPECT_FALSE(variables_with_hook("/hook", "address", "").contains("ASSAY_WATCH_TRACES"));
  EXPECT_EQ(variables_with_hook("/hook", "address", "/traces").at("ASSAY_WATCH_TRACES"), "/traces");
  EXPECT_EQ(variables_with_hook("", "address", "").at("PYTHONPATH"), "/mine");
  ::unsetenv("PYTHONPATH"), ::unsetenv("ASSAY_WATCH_TRACES");
  EXPECT_EQ(variables_with_hook("/hook", "address", "").at("PYTHONPATH"), "/hook");
}

TEST(WatchJob, AJobIsCalledByItsScript) {
  EXPECT_EQ(name_of_job({"torchrun", "--nproc-per-node", "2", "src/train.py", "--steps", "5"}), "train.py");
  EXPECT_EQ(name_of_job({"/usr/bin/sleep", "5"}), "sleep");
}

TEST(WatchRecord, AJobWithoutStepsHasItsTime) {
  WatchRequest request;
  request.words = {"sleep", "1"};
  Seen seen;
  seen.seconds = 2, seen.problem = "ended with code 3";
  const Record record = record_of(request, seen);
  EXPECT_EQ(record.key, "command/name=sleep");
  EXPECT_EQ(record.status, Status::failed);
  EXPECT_EQ(record.metrics.front().name, "wall_time");
}

}  // namespace
}  // namespace assay::watch
