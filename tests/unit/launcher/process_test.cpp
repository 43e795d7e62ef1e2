// How processes ended, and what they printed last.
#include "harness/launch/process.h"

#include <gtest/gtest.h>

#include <csignal>

namespace assay {
namespace {

TEST(DescribeStatus, SignalsAndCodes) {
  EXPECT_EQ(describe_status(SIGSEGV, false), "killed by SIGSEGV (signal 11)");
  EXPECT_EQ(describe_status(3 << 8, false), "ended with code 3");
  EXPECT_EQ(describe_status(137 << 8, true), "killed by SIGKILL (signal 9)");
  EXPECT_EQ(describe_status(0, true), "");
}

TEST(TailOf, LeavesOutWhatALauncherSaysOfItself) {
  const std::string frame(60, '-');
  EXPECT_EQ(
      tail_of("one\n" + frame + "\nPrimary job terminated\n" + frame + "\nmpirun: Forwarding signal 18\n\ntwo\n", 100),
      "one\ntwo");
}

TEST(TailOf, HoldsWholeLines) {
  EXPECT_EQ(tail_of("first line\nsecond\nthird\n", 14), "second\nthird");
  EXPECT_EQ(tail_of("", 10), "");
}

TEST(KeepTail, IsBounded) {
  std::string kept;
  for (int i = 0; i < 100; ++i) keep_tail(kept, std::string(10000, static_cast<char>('a' + i % 26)));
  EXPECT_LE(kept.size(), 140000u);
  EXPECT_EQ(kept.back(), static_cast<char>('a' + 99 % 26));
}

}  // namespace
}  // namespace assay
