// The matrix of pairs: which links and hosts are called slow, and the case over threads.
#include "suites/collective/pairwise.h"

#include "harness/core/error.h"
#include "harness/sampling/pairs.h"
#include "tests/unit/collective/over_threads.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <utility>

namespace assay::collective {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Links of `members` hosts, all 1 s within one percent.
class SlowPairs : public testing::Test {
 protected:
  PairTimes times(int members) {
    std::mt19937 noise(7);
    std::normal_distribution<double> normal(1, 0.01);
    PairTimes made(static_cast<std::size_t>(members),
                   std::vector<std::optional<RoundResult>>(static_cast<std::size_t>(members)));
    for (std::size_t a = 0; a < made.size(); ++a)
      for (std::size_t b = 0; b < made.size(); ++b)
        if (a != b) set(made, a, b, normal(noise));
    names_.clear();
    for (int i = 0; i < members; ++i) names_.push_back(fmt::format("n{}", i));
    return made;
  }
  static void set(PairTimes& times, std::size_t from, std::size_t to, double seconds) {
    times[from][to] = RoundResult{seconds, seconds * 0.995, seconds * 1.005};
  }
  std::vector<std::string> named(const PairTimes& times, Members members = Members::hosts) const {
    return name_slow(times, names_, members);
  }
  std::vector<std::string> names_;
};

TEST_F(SlowPairs, EqualLinksAreNotNamed) {
  for (const int members : {2, 3, 4, 5, 8, 16, 40}) EXPECT_THAT(named(times(members)), IsEmpty()) << members;
}

TEST_F(SlowPairs, OneSlowPairIsALink) {
  for (const int members : {3, 4, 8}) {
    SCOPED_TRACE(members);
    PairTimes slow = times(members);
    set(slow, 1, 2, 1.5);
    set(slow, 2, 1, 1.6);
    EXPECT_THAT(named(slow), ElementsAre(HasSubstr("slow link n1 - n2: 1.6")));
    EXPECT_THAT(named(slow), ElementsAre(HasSubstr("both ways")));
  }
}

TEST_F(SlowPairs, OneSlowDirectionIsNamedAsSuch) {
  PairTimes slow = times(4);
  set(slow, 3, 0, 2);
  EXPECT_THAT(named(slow), ElementsAre(HasSubstr("slow link n3 -> n0: 2")));
  EXPECT_THAT(named(slow), ElementsAre(HasSubstr("that way alone")));
}

TEST_F(SlowPairs, AHostWhoseLinksAreAllSlowIsNamedInsteadOfItsLinks) {
  for (const int members : {3, 4, 8}) {
    SCOPED_TRACE(members);
    PairTimes slow = times(members);
    for (std::size_t other = 0; other < slow.size(); ++other) {
      if (other == 2) continue;
      set(slow, 2, other, 3.1);
      set(slow, other, 2, 3.0);
    }
    EXPECT_THAT(named(slow), ElementsAre(HasSubstr("slow host n2: even its fastest link takes 3.1")));
  }
}

TEST_F(SlowPairs, OnASingleHostARankIsNotCalledAHost) {
  PairTimes slow = times(4);
  for (int i = 0; i < 4; ++i) names_[static_cast<std::size_t>(i)] = fmt::format("rank {}", i);
  for (std::size_t other : {0, 2, 3}) set(slow, 1, other, 3), set(slow, other, 1, 3);
  set(slow, 2, 3, 3);
  EXPECT_THAT(named(slow, Members::ranks),
              ElementsAre(testing::MatchesRegex("slow rank 1: even its fastest link takes .* as the median rank's"),
                          HasSubstr("slow link rank 2 -> rank 3: ")));
}

TEST_F(SlowPairs, AHostThatIsSlowOnlyInSendingIsNamedAsSuch) {
  PairTimes slow = times(4);
  for (std::size_t other = 1; other < 4; ++other) set(slow, 0, other, 5);
  EXPECT_THAT(named(slow), ElementsAre(HasSubstr("in sending")));
}

TEST_F(SlowPairs, AHostAndALinkElsewhereAreBothNamed) {
  PairTimes slow = times(8);
  for (std::size_t other = 0; other < 8; ++other)
    if (other != 5) set(slow, 5, other, 2), set(slow, other, 5, 2);
  set(slow, 1, 3, 4);
  EXPECT_THAT(named(slow), ElementsAre(HasSubstr("slow host n5"), HasSubstr("slow link n1 -> n3")));
}

TEST_F(SlowPairs, SmallOrUncertainDifferencesAreNotNamed) {
  PairTimes alike = times(8);
  for (auto& row : alike)
    for (auto& one : row)
      if (one) one = RoundResult{1, 1, 1};
  set(alike, 0, 1, 1.02);
  EXPECT_THAT(named(alike), IsEmpty());
  alike[0][1] = RoundResult{1.5, 1.0, 2.0};  // its interval contains the median of all
  EXPECT_THAT(named(alike), IsEmpty());
  alike[0][1] = RoundResult{1.5, std::nan(""), std::nan("")};  // too few samples for an interval
  EXPECT_THAT(named(alike), ElementsAre(HasSubstr("slow link n0 -> n1")));
}

TEST_F(SlowPairs, FurtherOnesAreCounted) {
  PairTimes slow = times(100);
  for (std::size_t i = 0; i < 60; i += 2) set(slow, i, i + 1, 2);
  const auto texts = named(slow);
  EXPECT_EQ(texts.size(), 21u);
  EXPECT_EQ(texts.back(), "slow: 10 more hosts or links");
}

std::map<std::string, ParamValue> pairwise(std::int64_t bytes, const std::string& batching = "batched") {
  return {{"op", std::string("pairwise")}, {"bytes", bytes}, {"batching", batching}};
}

TEST(PairwiseCase, OneRankHasNoPeer) {
  const auto comm = make_self_communicator();
  EXPECT_EQ(test::run_case(collective_family(), pairwise(8), *comm).skipped, "one rank has no peer to send to");
}

TEST(PairwiseCase, EveryDirectionOfEveryPairIsMeasured) {
  for (const int ranks : {2, 3, 4})
    for (const std::int64_t bytes : {8, 65536})
      for (const std::string batching : {"batched", "isolated"}) {
        SCOPED_TRACE(fmt::format("{} ranks, {} bytes, {}", ranks, bytes, batching));
        const test::Outcome out = over_threads(ranks, pairwise(bytes, batching));
        ASSERT_FALSE(out.skipped) << *out.skipped;
        EXPECT_TRUE(out.check("wrong_elements").passed);
        EXPECT_TRUE(out.check("changed_inputs").passed);
        ASSERT_TRUE(out.matrix);
        const bool small = bytes == 8;
        EXPECT_EQ(out.matrix->metric, small ? "latency" : "bandwidth");
        EXPECT_EQ(out.matrix->better, small ? Better::lower : Better::higher);
        ASSERT_EQ(out.matrix->ranks.size(), static_cast<std::size_t>(ranks));
        double worst = small ? 0 : INFINITY;
        for (std::size_t a = 0; a < out.matrix->ranks.size(); ++a)
          for (std::size_t b = 0; b < out.matrix->ranks.size(); ++b) {
            const double value = out.matrix->at(a, b);
            EXPECT_EQ(std::isnan(value), a == b);
            if (a == b) continue;
            EXPECT_GT(value, 0);
            worst = small ? std::max(worst, value) : std::min(worst, value);
          }
        const Metric& slowest = out.metric(small ? "slowest_pair_latency" : "slowest_pair_bandwidth");
        EXPECT_NEAR(*slowest.value, worst, worst * 1e-6);
        EXPECT_GT(*out.metric(small ? "median_pair_latency" : "median_pair_bandwidth").value, 0);
        EXPECT_EQ(out.measurement.rounds.size(), static_cast<std::size_t>(2 * pairing_rounds(ranks)));
        EXPECT_EQ(out.measurement.rank_medians.size(), static_cast<std::size_t>(ranks));
      }
}

TEST(PairwiseCase, AWrongElementFailsAndNamesWhereItCameFrom) {
  const test::Outcome out = over_threads(3, pairwise(65536), {Fault::wrong_sum});
  const Check& check = out.check("wrong_elements");
  EXPECT_FALSE(check.passed);
  EXPECT_EQ(check.value, 2);  // one element from each of the two others
  ASSERT_EQ(check.detail.size(), 1u);
  EXPECT_THAT(check.detail[0], HasSubstr("rank 2: from rank"));
}

}  // namespace
}  // namespace assay::collective
