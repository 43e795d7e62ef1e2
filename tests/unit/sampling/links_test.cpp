// Pairs of ranks: the partners of each round, and whether one link or a rank with all of its links is named.
#include "harness/sampling/links.h"
#include "harness/comm/forwarding_communicator.h"
#include "harness/comm/slow_link.h"
#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/device/cpu/cpu_device.h"
#include "harness/sampling/pairs.h"
#include "tests/support/thread_communicator.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(PairSchedule, EveryPairMeetsOnceWithOnePartnerPerRound) {
  for (const int members : {2, 3, 4, 5, 8, 13, 64, 101}) {
    SCOPED_TRACE(members);
    EXPECT_EQ(pairing_rounds(members), members % 2 ? members : members - 1);
    std::set<std::pair<int, int>> met;
    for (int round = 0; round < pairing_rounds(members); ++round) {
      int idle = 0;
      for (int member = 0; member < members; ++member) {
        const auto partner = partner_of(member, round, members);
        if (!partner) {
          ++idle;
          continue;
        }
        ASSERT_NE(*partner, member);
        ASSERT_GE(*partner, 0);
        ASSERT_LT(*partner, members);
        ASSERT_EQ(partner_of(*partner, round, members), member) << "round " << round;
        if (member < *partner) {
          EXPECT_TRUE(met.insert({member, *partner}).second);
        }
      }
      EXPECT_EQ(idle, members % 2);
    }
    EXPECT_EQ(met.size(), static_cast<std::size_t>(members * (members - 1) / 2));
  }
  EXPECT_EQ(pairing_rounds(1), 0);
}

// `each` ranks on each of `count` hosts; rank by rank, as launchers place them.
std::vector<std::string> hosts(int count, int each) {
  std::vector<std::string> names;
  for (int i = 0; i < count * each; ++i) names.push_back(fmt::format("h{}", i / each));
  return names;
}

TEST(LinkRounds, OnePartnerPerRoundAndEveryLinkOfASmallWorldOnce) {
  for (const auto& [count, each] : std::vector<std::pair<int, int>>{{1, 2}, {1, 3}, {1, 8}, {2, 1}, {3, 2}, {8, 8}}) {
    SCOPED_TRACE(fmt::format("{} hosts of {}", count, each));
    const std::vector<std::string> names = hosts(count, each);
    const LinkRounds rounds(names);
    std::set<std::pair<int, int>> met;
    for (int round = 0; round < rounds.count(); ++round)
      for (int rank = 0; rank < rounds.ranks(); ++rank) {
        const auto other = rounds.partner(rank, round);
        if (!other) continue;
        ASSERT_EQ(rounds.partner(*other, round), rank) << "round " << round;
        const bool same = names[static_cast<std::size_t>(rank)] == names[static_cast<std::size_t>(*other)];
        EXPECT_EQ(rounds.between_hosts(round), !same);
        if (rank < *other) {
          EXPECT_TRUE(met.insert({rank, *other}).second);
        }
      }
    const int within = count * each * (each - 1) / 2, between = each * count * (count - 1) / 2;
    EXPECT_EQ(met.size(), static_cast<std::size_t>(within + between));
  }
}

TEST(LinkRounds, LargeWorldsNeedNoMoreRounds) {
  EXPECT_EQ(LinkRounds(hosts(1, 256)).count(), 8);
  EXPECT_EQ(LinkRounds(hosts(100, 1)).count(), 8);
  EXPECT_EQ(LinkRounds(hosts(64, 8)).count(), 15);
  EXPECT_EQ(LinkRounds(hosts(1, 1)).count(), 0);
}

TEST(LinkRounds, HostsOfUnequalSizeLeaveRanksWithoutPartners) {
  const LinkRounds rounds({"a", "a", "b"});
  EXPECT_EQ(rounds.count(), 2);
  EXPECT_EQ(rounds.partner(0, 0), 1);
  EXPECT_EQ(rounds.partner(2, 0), std::nullopt);
  EXPECT_EQ(rounds.partner(2, 1), 0);
  EXPECT_EQ(rounds.partner(1, 1), std::nullopt);
}

// 1 ms within a host and 5 ms between hosts, give or take 10 %, and `times` as long if `slow` is true.
std::vector<std::string> judged(const std::vector<std::string>& names, const std::function<bool(int, int)>& slow,
                                double times = 8) {
  const LinkRounds rounds(names);
  std::vector<std::vector<double>> seconds(static_cast<std::size_t>(rounds.count()),
                                           std::vector<double>(names.size(), std::numeric_limits<double>::quiet_NaN()));
  for (int round = 0; round < rounds.count(); ++round)
    for (int rank = 0; rank < rounds.ranks(); ++rank)
      if (const auto other = rounds.partner(rank, round))
        seconds[static_cast<std::size_t>(round)][static_cast<std::size_t>(rank)] =
            (rounds.between_hosts(round) ? 5e-3 : 1e-3) * (1 + 0.01 * ((7 * rank + 3 * round) % 10)) *
            (slow(rank, *other) ? times : 1);
  std::vector<std::string> texts;
  for (const LinkFinding& finding : judge_links(rounds, seconds)) texts.push_back(describe(finding, names));
  return texts;
}
const auto nothing = [](int, int) { return false; };
std::function<bool(int, int)> only_link(int a, int b) {
  return [=](int i, int j) { return (i == a && j == b) || (i == b && j == a); };
}
std::function<bool(int, int)> all_of(int slow) {
  return [=](int i, int j) { return i == slow || j == slow; };
}

TEST(JudgeLinks, SimilarLinksAndLinksToOtherHostsAreNotNamed) {
  for (const auto& [count, each] :
       std::vector<std::pair<int, int>>{{1, 2}, {1, 3}, {1, 8}, {2, 1}, {2, 2}, {3, 1}, {3, 2}, {4, 8}, {40, 4}})
    EXPECT_THAT(judged(hosts(count, each), nothing), IsEmpty()) << count << " hosts of " << each;
  EXPECT_THAT(judged({"a", "a", "b"}, nothing), IsEmpty());
}

TEST(JudgeLinks, ASlowLinkIsDistinguishedFromASlowRank) {
  for (const auto& [count, each] :
       std::vector<std::pair<int, int>>{{1, 3}, {1, 4}, {1, 8}, {3, 1}, {5, 1}, {2, 2}, {3, 2}, {4, 4}}) {
    SCOPED_TRACE(fmt::format("{} hosts of {}", count, each));
    const std::vector<std::string> names = hosts(count, each);
    const int last = count * each - 1;
    const std::string name = fmt::format("rank {} on h{}", last, count - 1);
    const auto of_rank = judged(names, all_of(last));
    ASSERT_EQ(of_rank.size(), 1u) << testing::PrintToString(of_rank);
    EXPECT_THAT(of_rank.front(), HasSubstr("every one of " + name + " (to rank "));
    const int partner = each > 1 ? last - 1 : 1;
    const auto of_link = judged(names, only_link(partner, last));
    ASSERT_EQ(of_link.size(), 1u) << testing::PrintToString(of_link);
    EXPECT_THAT(of_link.front(),
                HasSubstr(fmt::format("that between rank {} on h{} and {} took ", partner, partner / each, name)));
  }
}

TEST(JudgeLinks, ASlowHostIsNamedByItsRanks) {
  const auto found = judged(hosts(3, 2), [](int i, int j) { return i / 2 != j / 2 && (i / 2 == 1 || j / 2 == 1); });
  EXPECT_THAT(found,
              testing::UnorderedElementsAre(HasSubstr("every one of rank 2 on h1 (to rank 0 on h0, rank 4 on h2)"),
                                            HasSubstr("every one of rank 3 on h1 (to rank 1 on h0, rank 5 on h2)")));
}

TEST(JudgeLinks, LinksOfDifferentKindsAreNotFaulty) {
  // Eight GPUs of which some pairs have two direct links, some one and some none, as in a hybrid cube mesh.
  const LinkRounds rounds(hosts(1, 8));
  std::vector<std::vector<double>> seconds(static_cast<std::size_t>(rounds.count()), std::vector<double>(8));
  for (int round = 0; round < rounds.count(); ++round)
    for (int i = 0; i < 8; ++i) {
      const int distance = i ^ *rounds.partner(i, round);
      const bool direct = distance == 1 || distance == 2 || distance == 3 || distance == 4;
      seconds[static_cast<std::size_t>(round)][static_cast<std::size_t>(i)] = !direct                          ? 90e-6
                                                                              : distance == 1 || distance == 2 ? 22e-6
                                                                                                               : 44e-6;
    }
  EXPECT_THAT(judge_links(rounds, seconds), IsEmpty());
}

TEST(JudgeLinks, OfTwoRanksTheEndsOfTheLinkAreCompared) {
  const LinkRounds rounds({"a", "b"});
  EXPECT_THAT(judge_links(rounds, {{1e-3, 2e-3}}), IsEmpty());
  const auto found = judge_links(rounds, {{1e-3, 8e-3}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(describe(found[0], {"a", "b"}),
            "that between rank 0 on a and rank 1 on b took 8.0 times as long at rank 1 as at rank 0");
  EXPECT_THAT(found[0].culprits(), ElementsAre(0, 1));
}

TEST(JudgeLinks, AnIncompleteMeasurementIsJudged) {
  const LinkRounds rounds(hosts(1, 4));
  const double none = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::vector<double>> seconds(3, std::vector<double>(4, none));
  EXPECT_THAT(judge_links(rounds, seconds), IsEmpty());
  for (int i = 0; i < 4; ++i)
    seconds[0][static_cast<std::size_t>(i)] = i == 3 || rounds.partner(i, 0) == 3 ? 0.5 : 1e-3;
  const auto found = judge_links(rounds, seconds);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(describe(found[0], hosts(1, 4)), HasSubstr("rank 3 on h0 took 500 times"));
}

// Wraps a rank's communicator: exchanges take `usual_ms` longer, so that other load on the machine matters less; those
// of some pairs take 40 ms longer.
class SlowPartners final : public ForwardingCommunicator {
 public:
  SlowPartners(Communicator& inner, std::function<bool(int, int)> slow, int usual_ms = 4)
      : ForwardingCommunicator(inner), slow_(std::move(slow)), usual_ms_(usual_ms) {}
  void send(const void* data, std::size_t count, DType dtype, int to, Stream& s) override {
    late_ = slow_(rank(), to) ? 40 : usual_ms_;
    inner_.send(data, count, dtype, to, s);
  }
  void group(const std::function<void()>& body, Stream& s) override {
    inner_.group(body, s);
    std::this_thread::sleep_for(std::chrono::milliseconds(std::exchange(late_, 0)));
  }

 private:
  std::function<bool(int, int)> slow_;
  int usual_ms_;
  int late_ = 0;  // ms, in the open group
};

using Wrap = std::function<std::unique_ptr<Communicator>(Communicator&, Device&)>;

// Runs ranks as threads, which must all find `text`. Retries, because other load on the machine may hide it.
void expect_found(int ranks, const Wrap& wrap, const testing::Matcher<std::string>& text) {
  std::vector<std::string> first;
  for (int attempt = 0; attempt < 5; ++attempt) {
    std::mutex mutex;
    std::vector<std::vector<std::string>> found;
    test::run_ranks(ranks, [&](Communicator& comm) {
      const auto device = cpu::make_cpu_device();
      const auto used = wrap(comm, *device);
      const SlowLinks slow = find_slow_links(*used, *device);
      std::vector<std::string> texts;
      for (const LinkFinding& finding : slow.findings) texts.push_back(describe(finding, slow.hosts));
      const std::lock_guard lock(mutex);
      found.push_back(std::move(texts));
    });
    ASSERT_EQ(found.size(), static_cast<std::size_t>(ranks));
    for (const auto& texts : found) ASSERT_EQ(texts, found.front());
    first = found.front();
    if (first.size() == 1 && testing::Matches(text)(first.front())) return;
  }
  EXPECT_THAT(first, ElementsAre(text));
}

TEST(FindSlowLinks, DelayedPairsAreNamed) {
  const std::string host = this_host();
  const auto between = [](std::function<bool(int, int)> slow) -> Wrap {
    return [slow](Communicator& comm, Device&) { return std::make_unique<SlowPartners>(comm, slow); };
  };
  for (const int ranks : {3, 4}) {
    SCOPED_TRACE(ranks);
    expect_found(ranks, between(only_link(0, 2)),
                 HasSubstr(fmt::format("that between rank 0 on {0} and rank 2 on {0} took ", host)));
    expect_found(ranks, between(all_of(1)),
                 HasSubstr(fmt::format("every one of rank 1 on {0} (to rank 0 on {0}, ", host)));
  }
}

TEST(FindSlowLinks, AnInjectedSlowLinkIsNamed) {
  for (const int ranks : {2, 3}) {
    const Wrap wrap = [&](Communicator& comm, Device& device) -> std::unique_ptr<Communicator> {
      if (comm.rank() == ranks - 1) return std::make_unique<SlowLink>(comm, device, nullptr);
      return std::make_unique<SlowPartners>(comm, nothing, 1);  // the fault adds 8.5 ms
    };
    if (ranks == 2)
      expect_found(ranks, wrap, HasSubstr(" times as long at rank 1 as at rank 0"));
    else
      expect_found(ranks, wrap, HasSubstr("every one of rank 2 on "));
  }
}

TEST(FindSlowLinks, AWorldOfOneHasNone) {
  const auto comm = make_self_communicator();
  const auto device = cpu::make_cpu_device();
  EXPECT_THAT(find_slow_links(*comm, *device).findings, IsEmpty());
}

}  // namespace
}  // namespace assay
