// The late rank is the one that others wait for, never one that waits.
#include "harness/run/lateness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace assay {
namespace {

using testing::HasSubstr;
using testing::Not;

RankStatus sight(std::uint64_t begun, std::uint64_t ended) {
  RankStatus rank;
  rank.host = "n" + std::to_string(begun);
  rank.answers = true;
  rank.phase = "measure";
  rank.phase_seconds = 2.9;
  rank.state = 'R';
  rank.begun = begun;
  rank.ended = ended;
  rank.call = "all_reduce";
  return rank;
}

TEST(Lateness, TheRankThatHasNotArrivedIsNamed) {
  const Lateness late = find_late({sight(13, 12), sight(12, 12), sight(13, 12)});
  EXPECT_EQ(late.rank, 1);
  EXPECT_THAT(late.words, HasSubstr("rank 1 on n12, in measure for 2.9 s"));
  EXPECT_THAT(late.words, HasSubstr("has not arrived at all_reduce (call 13 of their world), where ranks 0, 2 wait"));
}

TEST(Lateness, CountsDecideWhenCallsReturnAtOnce) {
  const Lateness late = find_late({sight(12, 12), sight(13, 13)});
  EXPECT_EQ(late.rank, 0);
  EXPECT_THAT(late.words, HasSubstr("where rank 1 waits"));
}

TEST(Lateness, ARankOutsideTheCallInWhichOthersWaitIsNamed) {
  const Lateness late = find_late({sight(13, 13), sight(13, 12)});
  EXPECT_EQ(late.rank, 0);
  EXPECT_THAT(late.words, HasSubstr("is outside all_reduce, where rank 1 waits"));
}

TEST(Lateness, NobodyIsBlamedWhenAllWait) {
  const Lateness late = find_late({sight(13, 12), sight(13, 12)});
  EXPECT_EQ(late.rank, -1);
  EXPECT_THAT(late.words, HasSubstr("ranks 0, 1 are all in all_reduce (call 13"));
}

TEST(Lateness, RanksThatDoNotAnswerComeFirst) {
  RankStatus stopped = sight(13, 12);
  stopped.answers = false;
  stopped.state = 'T';
  const Lateness late = find_late({sight(12, 12), sight(13, 12), stopped});
  EXPECT_EQ(late.rank, 2);
  EXPECT_THAT(late.words, HasSubstr("does not answer: its process is stopped"));
}

TEST(Lateness, RanksThatAreDoneAreNotLate) {
  RankStatus done = sight(11, 11);
  done.done = true;
  const Lateness late = find_late({done, sight(12, 12)});
  EXPECT_EQ(late.rank, 1);
  EXPECT_THAT(late.words, HasSubstr("is not done; the others are"));
}

TEST(Lateness, ASingleRankReportsItsLastSpan) {
  EXPECT_THAT(find_late({sight(0, 0)}).words, HasSubstr("in measure for 2.9 s"));
  RankStatus before = sight(0, 0);
  before.phase.clear();
  before.state = 'D';
  EXPECT_THAT(find_late({before}).words, HasSubstr("before its first span: its process sleeps uninterruptibly"));
}

TEST(Lateness, OnlySomeOfManyRanksAreListed) {
  std::vector<RankStatus> all(100, sight(12, 12));
  all[0] = sight(13, 12);
  const Lateness late = find_late(all);
  EXPECT_EQ(late.rank, 1);
  EXPECT_THAT(late.words, HasSubstr("and 90 more"));
  EXPECT_THAT(late.words, Not(HasSubstr("99")));
}

TEST(Lateness, ProcessStateComesFromTheKernel) {
  EXPECT_EQ(process_state(::getpid()), 'R');
  EXPECT_EQ(process_state(-1), '?');
}

}  // namespace
}  // namespace assay
