// How processes ended, and what they printed last.
#include "harness/process/process.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <string_view>

namespace assay {
namespace {

TEST(DescribeStatus, SignalsAndCodes) {
  EXPECT_EQ(describe_status(SIGSEGV, false), "killed by SIGSEGV (signal 11)");
  EXPECT_EQ(describe_status(3 << 8, false), "ended with code 3");
  EXPECT_EQ(describe_status(137 << 8, true), "killed by SIGKILL (signal 9)");
  EXPECT_EQ(describe_status(0, true), "");
  // Open MPI's mpirun may report how it ended the other rank.
  EXPECT_EQ(describe_status(14 << 8, true), "");
  EXPECT_EQ(describe_status(14 << 8, false), "ended with code 14");
}

TEST(TailOf, OmitsTheLaunchersRemarks) {
  const std::string frame(60, '-');
  EXPECT_EQ(
      tail_of("one\n" + frame + "\nPrimary job terminated\n" + frame + "\nmpirun: Forwarding signal 18\n\ntwo\n", 100),
      "one\ntwo");
}

TEST(TailOf, OmitsReportsOfLostPeers) {
  using namespace std::string_view_literals;
  const std::string missing(
      "last words\n\0[one:00000] *** An error occurred in Socket closed\n[one:00000] *** on a NULL communicator\n"
      "[one:00000] *** Unknown error\n\0\n"sv);
  EXPECT_EQ(tail_of(missing, 400), "last words");
  // Other errors of MPI may be the cause.
  const std::string own = "[one:00001] *** An error occurred in MPI_Recv\n[one:00001] *** MPI_ERR_TRUNCATE";
  EXPECT_EQ(tail_of(own, 400), own);
}

TEST(TailOf, KeepsWholeLines) {
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
