// Slow links between hosts and what explains them: small clusters by hand, large ones by simulation.
#include "harness/fitness/cluster/slow_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iterator>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace assay::fitness {
namespace {

using Kind = SlowCause::Kind;
// Kind, first host (of a pair the smaller), its second host or its rail.
using Name = std::tuple<Kind, std::size_t, std::size_t>;
using Names = std::set<Name>;

std::size_t draws_or(std::size_t few) {
  const char* const draws = std::getenv("ASSAY_LINK_DRAWS");
  return draws ? std::strtoul(draws, nullptr, 10) : few;
}

Name name_of(const SlowCause& cause) {
  return {cause.kind, cause.hosts.front(), cause.kind == Kind::pair ? cause.hosts[1] : cause.rail.value_or(0)};
}

Names names_of(const SlowLinks& found) {
  Names names;
  for (const SlowCause& cause : found.causes) names.insert(name_of(cause));
  return names;
}

// Links of one second each, made slower by what the test breaks.
class Cluster {
 public:
  Cluster(std::size_t hosts, std::size_t rails) : times_(hosts, rails) {
    change([](std::size_t, std::size_t, std::size_t, float& time) { time = 1; });
  }

  template <typename F>
  void change(const F& to) {
    for (std::size_t a = 0; a < times_.hosts(); ++a)
      for (std::size_t b = 0; b < times_.hosts(); ++b)
        for (std::size_t rail = 0; a != b && rail < times_.rails(); ++rail) to(a, b, rail, times_.at(a, b, rail));
  }
  void slow_port(std::size_t host, std::optional<std::size_t> rail, float times) {
    for (std::size_t other = 0; other < times_.hosts(); ++other)
      for (std::size_t one = 0; other != host && one < times_.rails(); ++one)
        if (!rail || one == *rail)
          for (float* const time : {&times_.at(host, other, one), &times_.at(other, host, one)})
            *time = std::max(*time, times);
  }
  void slow_host(std::size_t host, float times) { slow_port(host, std::nullopt, times); }
  void slow_pair(std::size_t a, std::size_t b, float times) {
    for (std::size_t rail = 0; rail < times_.rails(); ++rail)
      for (float* const time : {&times_.at(a, b, rail), &times_.at(b, a, rail)}) *time = std::max(*time, times);
  }
  // Of hosts in groups of `size`.
  void slow_leaf(std::size_t leaf, std::size_t size, std::size_t rail, float times) {
    for (std::size_t host = leaf * size; host < (leaf + 1) * size; ++host)
      for (std::size_t other = 0; other < times_.hosts(); ++other)
        if (other / size != leaf)
          for (float* const time : {&times_.at(host, other, rail), &times_.at(other, host, rail)})
            *time = std::max(*time, times);
  }
  float& at(std::size_t from, std::size_t to, std::size_t rail) { return times_.at(from, to, rail); }
  SlowLinks explain(std::size_t leaf_size = 0) const {
    std::vector<std::size_t> leaf_of;
    for (std::size_t host = 0; leaf_size > 0 && host < times_.hosts(); ++host) leaf_of.push_back(host / leaf_size);
    return explain_slow_links(times_, leaf_of);
  }

 private:
  RailTimes times_;
};

TEST(SlowLinks, NothingIsNamedInAHealthyCluster) {
  for (const std::size_t hosts : {1, 2, 3, 8}) {
    const SlowLinks found = Cluster(hosts, 2).explain(2);
    EXPECT_TRUE(found.causes.empty()) << hosts;
    EXPECT_EQ(found.links, hosts * (hosts - 1)) << "two rails";
    EXPECT_EQ(found.slow, 0u);
  }
}

TEST(SlowLinks, TheSlowOneOfThreeHostsIsNamed) {
  Cluster cluster(3, 1);
  cluster.slow_host(1, 2);
  const SlowLinks found = cluster.explain();
  ASSERT_EQ(names_of(found), Names({{Kind::host, 1, 0}}));
  EXPECT_EQ(found.causes[0].slow, 2u);
  EXPECT_EQ(found.causes[0].links, 2u);
  EXPECT_NEAR(found.causes[0].sending, 2, 1e-6);
  EXPECT_NEAR(found.usual, 1, 1e-6);
  EXPECT_EQ(found.unexplained, 0u);
}

TEST(SlowLinks, ASingleSlowLinkIsUnexplained) {
  Cluster cluster(4, 1);
  cluster.slow_pair(0, 2, 3);
  const SlowLinks found = cluster.explain();
  EXPECT_TRUE(found.causes.empty());
  EXPECT_EQ(found.slow, 1u);
  EXPECT_EQ(found.unexplained, 1u);
  ASSERT_EQ(found.left.size(), 1u);
  EXPECT_EQ(found.left[0].from, 0u);
  EXPECT_EQ(found.left[0].to, 2u);
  EXPECT_NEAR(found.left[0].back, 3, 1e-6);
}

TEST(SlowLinks, APairIsNamedIfAllOfItsRailsAreSlow) {
  Cluster cluster(8, 8);
  cluster.slow_pair(2, 5, 1.5F);
  EXPECT_EQ(names_of(cluster.explain()), Names({{Kind::pair, 2, 5}}));
}

TEST(SlowLinks, APortIsToldFromItsHost) {
  Cluster cluster(8, 4);
  cluster.slow_port(3, 2, 2);
  cluster.slow_host(6, 1.5F);
  EXPECT_EQ(names_of(cluster.explain()), Names({{Kind::port, 3, 2}, {Kind::host, 6, 0}}));
}

TEST(SlowLinks, ASlowDirectionIsTold) {
  Cluster cluster(6, 2);
  cluster.change([](std::size_t, std::size_t to, std::size_t rail, float& time) {
    if (to == 4 && rail == 1) time = 2;
  });
  const SlowLinks found = cluster.explain();
  ASSERT_EQ(names_of(found), Names({{Kind::port, 4, 1}}));
  EXPECT_NEAR(found.causes[0].sending, 1, 1e-6);
  EXPECT_NEAR(found.causes[0].receiving, 2, 1e-6);
}

TEST(SlowLinks, ASwitchIsNamedInsteadOfItsHosts) {
  Cluster cluster(16, 2);
  cluster.slow_leaf(1, 4, 1, 1.43F);
  const SlowLinks found = cluster.explain(4);
  ASSERT_EQ(names_of(found), Names({{Kind::leaf, 4, 1}}));
  EXPECT_THAT(found.causes[0].hosts, testing::ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(names_of(cluster.explain()),
            Names({{Kind::port, 4, 1}, {Kind::port, 5, 1}, {Kind::port, 6, 1}, {Kind::port, 7, 1}}))
      << "without the switches";
}

TEST(SlowLinks, AFaultBehindAnotherShows) {
  Cluster cluster(16, 2);
  cluster.slow_leaf(1, 4, 1, 1.43F);
  cluster.slow_port(5, 1, 3);
  EXPECT_EQ(names_of(cluster.explain(4)), Names({{Kind::leaf, 4, 1}, {Kind::port, 5, 1}}));
  Cluster hosts(8, 1);
  hosts.slow_host(0, 2);
  hosts.slow_host(1, 2);
  hosts.slow_host(2, 4);
  EXPECT_EQ(names_of(hosts.explain()), Names({{Kind::host, 0, 0}, {Kind::host, 1, 0}, {Kind::host, 2, 0}}));
}

TEST(SlowLinks, WhatWasNotMeasuredIsNoFault) {
  Cluster cluster(8, 2);
  cluster.change([](std::size_t from, std::size_t to, std::size_t, float& time) {
    if (from == 2 || to == 2) time = std::nanf("");
  });
  cluster.slow_host(5, 2);
  cluster.at(2, 5, 0) = cluster.at(5, 2, 0) = std::nanf("");
  const SlowLinks found = cluster.explain();
  EXPECT_EQ(names_of(found), Names({{Kind::host, 5, 0}}));
  EXPECT_TRUE(explain_slow_links(RailTimes(4, 2), {}).causes.empty());
}

// As of four hosts on a busy machine: two of the three sound links are beyond the limit, too.
TEST(SlowLinks, AHostThatIsFarSlowerIsNamedAmongNoisyLinks) {
  for (const std::array<float, 3>& sound : {std::array{1.F, 1.8F, 3.5F}, {3.5F, 1.F, 1.8F}, {1.8F, 3.5F, 1.F}}) {
    Cluster cluster(4, 1);
    const auto pairs = {std::pair{0, 1}, {0, 3}, {1, 3}};
    for (std::size_t i = 0; i < 3; ++i) {
      const auto& [a, b] = pairs.begin()[i];
      cluster.slow_pair(static_cast<std::size_t>(a), static_cast<std::size_t>(b), sound[i]);
    }
    cluster.slow_host(2, 22);
    const SlowLinks found = cluster.explain();
    EXPECT_TRUE(names_of(found).contains({Kind::host, 2, 0}));
    EXPECT_EQ(found.causes.front().slow, 3u);
  }
}

TEST(SlowLinks, AGivenLimitHolds) {
  Cluster cluster(8, 1);
  cluster.slow_host(3, 2.5F);
  RailTimes times(8, 1);
  for (std::size_t a = 0; a < 8; ++a)
    for (std::size_t b = 0; b < 8; ++b)
      if (a != b) times.at(a, b, 0) = cluster.at(a, b, 0);
  EXPECT_EQ(explain_slow_links(times, {}, {3, 3}).slow, 0u);
  EXPECT_EQ(names_of(explain_slow_links(times, {}, {2, 2})), Names({{Kind::host, 3, 0}}));
}

// ---- by simulation

// Times of sound links over their median, as tests/cluster/record_noise.py has recorded them.
const std::vector<float>& recorded_noise() {
  static const std::vector<float> all = [] {
    std::ifstream file(ASSAY_SOURCE "/tests/unit/fitness/cluster/link_noise.txt");
    return std::vector<float>(std::istream_iterator<float>(file), {});
  }();
  return all;
}

// Lognormal noise of 2 to 5 % with a tail: one time in a hundred is up to three times as far off. Every third draw has
// recorded noise.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : generator_(seed) {
    if (seed % 3 == 2) {
      const std::vector<float>& recorded = recorded_noise();
      for (float& one : table_) one = recorded.at(generator_() % recorded.size());
      return;
    }
    std::normal_distribution<float> normal;
    const float sigma = std::uniform_real_distribution<float>(0.02F, 0.05F)(generator_);
    for (std::size_t i = 0; i < table_.size(); ++i)
      table_[i] = std::exp(sigma * normal(generator_) * (i % 100 == 0 ? 3 : 1));
  }
  float factor() { return table_[generator_() % table_.size()]; }
  std::size_t below(std::size_t count) { return generator_() % count; }
  bool happens(double probability) { return static_cast<double>(generator_()) < probability * 4294967296.0; }

 private:
  std::mt19937 generator_;
  std::array<float, 4096> table_;
};

// Calls draw(0), draw(1), ... on two threads, and returns what they found, in order.
template <typename Draw>
auto all_draws(std::size_t draws, const Draw& draw) {
  std::vector<decltype(draw(draws))> found(draws);
  const auto every_second = [&](std::size_t first) {
    for (std::size_t i = first; i < draws; i += 2) found[i] = draw(i);
  };
  auto other = std::async(std::launch::async, every_second, 1);
  every_second(0);
  other.get();
  return found;
}

struct Rates {
  std::size_t faults = 0, named = 0, wrong = 0;
};

// 5 % of hosts or of their ports, two leaf switches and twenty pairs, slower by a quarter to threefold.
Rates broken_cluster(std::size_t hosts, std::size_t rails, std::uint64_t seed) {
  constexpr std::size_t leaf_size = 32;
  Noise noise(seed);
  Cluster cluster(hosts, rails);
  Names broken;
  const auto times = [&] { return 1.25F + 0.25F * static_cast<float>(noise.below(8)); };
  std::set<std::pair<std::size_t, std::size_t>> leaves;
  while (leaves.size() < 2) leaves.insert({noise.below(hosts / leaf_size), noise.below(rails)});
  for (const auto& [leaf, rail] : leaves) {
    cluster.slow_leaf(leaf, leaf_size, rail, times());
    broken.insert({Kind::leaf, leaf * leaf_size, rail});
  }
  std::set<std::size_t> bad;
  while (bad.size() < std::max<std::size_t>(1, hosts / 20)) bad.insert(noise.below(hosts));
  for (const std::size_t host : bad) {
    const std::size_t rail = noise.below(rails);
    const bool whole = noise.happens(0.5);
    // What is no slower than its switch cannot be seen behind it.
    const bool hidden = !whole && leaves.contains({host / leaf_size, rail});
    if (whole) cluster.slow_host(host, times());
    if (!whole && !hidden) cluster.slow_port(host, rail, times());
    if (!hidden) broken.insert(whole ? Name{Kind::host, host, 0} : Name{Kind::port, host, rail});
  }
  for (std::size_t pairs = 0; pairs < 20;) {
    const std::size_t a = noise.below(hosts), b = noise.below(hosts);
    if (a >= b || bad.contains(a) || bad.contains(b) || broken.contains({Kind::pair, a, b})) continue;
    cluster.slow_pair(a, b, 1.5F + 0.25F * static_cast<float>(noise.below(8)));
    broken.insert({Kind::pair, a, b});
    ++pairs;
  }
  cluster.change([&](std::size_t, std::size_t, std::size_t, float& time) { time *= noise.factor(); });
  Rates rates{broken.size()};
  for (const Name& name : names_of(cluster.explain(leaf_size))) ++(broken.contains(name) ? rates.named : rates.wrong);
  return rates;
}

Rates broken_clusters(std::size_t hosts, std::size_t rails, std::size_t draws) {
  Rates sum;
  for (const Rates& one :
       all_draws(draws, [&](std::size_t draw) { return broken_cluster(hosts, rails, 1000 + draw); })) {
    sum.faults += one.faults, sum.named += one.named, sum.wrong += one.wrong;
  }
  std::printf("%zu clusters of %zu hosts and %zu rails: %zu of %zu faults named, %zu wrong names\n", draws, hosts,
              rails, sum.named, sum.faults, sum.wrong);
  return sum;
}

TEST(SlowLinks, SimulatedFaultsAreNamed) {
  for (const auto& [hosts, draws] : {std::pair{std::size_t{128}, std::size_t{20}}, {1024, draws_or(1)}}) {
    const Rates rates = broken_clusters(hosts, 8, draws);
    EXPECT_GE(static_cast<double>(rates.named), 0.99 * static_cast<double>(rates.faults)) << hosts;
    EXPECT_LE(rates.wrong, draws / 100) << hosts;
  }
}

// Links of sound hosts take up to three and a half times as long as others, as where hosts share a few CPUs.
TEST(SlowLinks, AHostThatIsFarSlowerIsNamedInAnyNoise) {
  for (const std::size_t hosts : {3, 4, 5, 8, 16}) {
    std::size_t named = 0, others = 0;
    for (std::size_t draw = 0; draw < 300; ++draw) {
      std::mt19937 generator(static_cast<std::mt19937::result_type>(hosts * 1000 + draw));
      std::uniform_real_distribution<float> noise(1, 3.5F);
      RailTimes times(hosts, 1);
      for (std::size_t a = 0; a < hosts; ++a)
        for (std::size_t b = 0; b < hosts; ++b)
          if (a != b) times.at(a, b, 0) = noise(generator) * (a == 2 ? 15 : 1);
      const Names names = names_of(explain_slow_links(times, {}, {1 / 0.6, 1 / 0.6}));
      named += names.contains({Kind::host, 2, 0});
      others += names.size() - names.contains({Kind::host, 2, 0});
    }
    std::printf("%zu noisy hosts, one 15 times as slow: named in %zu of 300, %zu others\n", hosts, named, others);
    EXPECT_EQ(named, 300u) << hosts;
  }
}

TEST(SlowLinks, BurstsNameNothing) {
  std::size_t wrong = 0;
  const auto draw_healthy = [&](std::size_t hosts, std::size_t draws) {
    const auto names = all_draws(draws, [&](std::size_t draw) {
      Noise noise(5000 + draw);
      Cluster cluster(hosts, 8);
      cluster.change([&](std::size_t, std::size_t, std::size_t, float& time) {
        time *= noise.factor() * (noise.happens(0.05) ? 1.3F : 1);
      });
      return cluster.explain(hosts / 4).causes.size();
    });
    for (const std::size_t one : names) wrong += one;
    std::printf("%zu healthy clusters of %zu hosts and 8 rails: %zu wrong names so far\n", draws, hosts, wrong);
  };
  draw_healthy(16, 1000);
  draw_healthy(1024, draws_or(1));
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace assay::fitness
