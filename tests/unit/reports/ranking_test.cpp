// Machines ranked by speed and cost, with figures computed by hand, and a thousand simulated triples.
#include "reports/ranking/ranking.h"

#include "tests/unit/reports/cost_fixtures.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace assay::report::ranking {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// The machines that buyers compare: relative speed, and USD per hour on demand.
struct Bought {
  std::string name;
  double speed, usd;
};
const std::vector<Bought> triple = {{"p5", 1, 55.04}, {"p4de", 0.55, 27.45}, {"a3", 1.08, 87.83}};

RunData run_of(const std::string& type, const std::string& host, double tokens_per_second) {
  return run_on(type, {training({test::metric("throughput", tokens_per_second, "tokens/s")})}, host);
}

PriceSource prices() {
  PriceFile file;
  file.name = "own.json";
  for (const Bought& one : triple) {
    Price price;
    price.instance_type = one.name;
    price.on_demand = one.usd;
    price.source = "a quote";
    price.date = "2026-01-01";
    file.prices.push_back(price);
  }
  std::ranges::sort(file.prices, {}, &Price::instance_type);
  PriceSource source;
  source.files = {file};
  return source;
}

// As many machines of each kind as there are factors, which are those of their speeds.
std::vector<RunData> runs_of(const std::vector<double>& factors) {
  std::vector<RunData> runs;
  for (const Bought& one : triple)
    for (std::size_t i = 0; i < factors.size(); ++i)
      runs.push_back(run_of(one.name, one.name + "-" + std::to_string(i), 20'000 * one.speed * factors[i]));
  return runs;
}

std::vector<std::string> said(const std::vector<RunData>& runs) {
  const RunSet set(runs);
  const Ranking ranking = rank(set, prices());
  return ranking.cases.empty() ? std::vector<std::string>{} : sentences_of(ranking, ranking.cases.front());
}

TEST(Ranking, NamesTheFastestTheCheapestAndTheBreakEven) {
  // Cost is price over speed: 55.04, 27.45 / 0.55 = 49.91 and 87.83 / 1.08 = 81.32, so p5 would equal p4de at 49.91.
  EXPECT_THAT(said(runs_of({0.99, 1, 1.01})),
              ElementsAre("Fastest: a3, 8.0 % ahead of p5.",
                          "Cheapest (on demand): p4de, 9.3 % below p5; it stays cheapest while p5 costs more than "
                          "49.9 USD/h."));
}

TEST(Ranking, FiguresAreThoseOfOneKind) {
  const RunSet set(runs_of({0.99, 1, 1.01}));
  const Ranking ranking = rank(set, prices());
  ASSERT_EQ(ranking.cases.size(), 1u);
  const std::vector<Row>& rows = ranking.cases[0].rows;
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_NEAR(rows[0].figure.value, 21'600, 5);
  EXPECT_NEAR(rows[1].relative.value, 1 / 1.08, 1e-6);
  EXPECT_NEAR(rows[2].relative.value, 0.55 / 1.08, 1e-6);
  EXPECT_EQ(ranking.kinds[rows[2].kind].name, "p4de");
  EXPECT_EQ(rows[2].side.logs.size(), 3u);
  ASSERT_EQ(rows[2].usd.size(), 1u);
  EXPECT_EQ(ranking.cases[0].per, "million tokens");
  EXPECT_NEAR(rows[2].usd[0].value.value, 27.45 / 3600 * 1e6 / 11'000, 1e-3);
}

TEST(Ranking, OneMachineEachIsATieBelowFifteenPercent) {
  EXPECT_THAT(
      said(runs_of({1})),
      ElementsAre(AllOf(HasSubstr("Fastest: a tie of a3 and p5: a3 is 8.0 % ahead of p5; one machine each: below "
                                  "15 % is no finding"),
                        HasSubstr("machines of each would decide")),
                  AllOf(HasSubstr("Cheapest (on demand): a tie of p4de and p5"),
                        HasSubstr("while p5 costs more than 49.9 USD/h"))));
}

TEST(Ranking, RunsOfOneMachineAreNotMachines) {
  std::vector<RunData> runs = runs_of({1});
  for (const Bought& one : triple)
    for (const double factor : {0.999, 1.001})
      runs.push_back(run_of(one.name, one.name + "-0", 20'000 * one.speed * factor));
  EXPECT_THAT(said(runs), Contains(HasSubstr("one machine each: below 15 % is no finding")));
}

TEST(Ranking, TimesCountAsTheirInverse) {
  std::vector<RunData> runs;
  for (const auto& [type, seconds] : {std::pair("slow", 2.0), std::pair("fast", 1.0)})
    runs.push_back(run_on(type, {test::record_of("latency/size=1", {test::seconds("latency", seconds)})}, type));
  const RunSet set(std::move(runs));
  const Ranking ranking = rank(set, {});
  ASSERT_EQ(ranking.cases.size(), 1u);
  EXPECT_EQ(ranking.kinds[ranking.cases[0].rows[0].kind].name, "fast");
  EXPECT_NEAR(ranking.cases[0].rows[0].figure.value, 1, 1e-9);
  EXPECT_NEAR(ranking.cases[0].rows[1].relative.value, 0.5, 1e-9);
}

TEST(Ranking, AMachineThatLacksOrFailedACaseIsNamed) {
  std::vector<RunData> runs = runs_of({1});
  runs[1].records[0].status = Status::failed;
  EXPECT_THAT(said(runs), Contains(HasSubstr("Not ranked: p4de: failed")));
  runs[1].records.clear();
  EXPECT_THAT(said(runs), Contains(HasSubstr("Not ranked: p4de: not run")));
  runs[2].records[0].status = Status::failed;  // p5 alone has a figure
  const RunSet set(runs);
  const Ranking ranking = rank(set, prices());
  EXPECT_THAT(ranking.cases, IsEmpty());
  EXPECT_THAT(ranking.not_ranked, Contains(HasSubstr("a3: failed")));
  EXPECT_FALSE(sections_of(ranking).empty());
}

TEST(Ranking, OtherConditionsAreNotRankedOtherInstructionSetsAre) {
  std::vector<RunData> runs = runs_of({1});
  runs[0].records[0].choices["isa"] = "avx512";
  runs[1].records[0].choices["isa"] = "avx2";
  runs[2].records[0].conditions["clock"] = "locked";
  for (RunData& run : runs) run.records[0].schema = 2;
  const std::vector<std::string> sentences = said(runs);
  EXPECT_THAT(sentences, Contains(HasSubstr("Fastest: p5, 82 % ahead of p4de")));
  EXPECT_THAT(sentences, Contains(HasSubstr("Not ranked: a3: clock")));
}

TEST(Ranking, AMissingPriceIsNamed) {
  std::vector<RunData> runs = runs_of({1});
  runs.push_back(run_of("trn1", "trn1-0", 30'000));
  EXPECT_THAT(said(runs), Contains("Not ranked by cost, without a price: trn1."));
}

TEST(Ranking, RunsOfOneKindHaveNone) {
  std::vector<RunData> runs;
  for (const char* host : {"n1", "n2"}) runs.push_back(run_of("p5", host, 100));
  const RunSet set(std::move(runs));
  EXPECT_THAT(sections_of(rank(set, {})), IsEmpty());
}

// Three kinds of three machines each, which differ by 3 % within a kind.
struct Outcome {
  int wrong = 0;  // a kind was named the fastest that is not
  int named = 0;  // the fastest was named
  int tied = 0;   // none was named
};
Outcome simulate(const std::vector<double>& speeds, int trials) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> machine(0, 0.03);
  const std::size_t fastest = static_cast<std::size_t>(std::ranges::max_element(speeds) - speeds.begin());
  const bool alone = std::ranges::count(speeds, speeds[fastest]) == 1;
  Outcome outcome;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<Side> sides(speeds.size());
    for (std::size_t i = 0; i < speeds.size(); ++i)
      for (int n = 0; n < 3; ++n) sides[i].logs.push_back(std::log(speeds[i] * machine(random)));
    const Spread spread = spread_of(sides);
    const auto best = std::ranges::max_element(sides, {}, &Side::mean);
    const bool named = std::ranges::all_of(sides, [&](const Side& side) {
      return &side == &*best || best->mean() - side.mean() >= decisive_difference(*best, side, spread, sides.size());
    });
    if (!named)
      ++outcome.tied;
    else if (alone && static_cast<std::size_t>(best - sides.begin()) == fastest)
      ++outcome.named;
    else
      ++outcome.wrong;
  }
  return outcome;
}

TEST(RankingSimulation, AThousandTriples) {
  constexpr int trials = 1000;
  const Outcome equal = simulate({1, 1, 1}, trials), two = simulate({1, 1, 0.55}, trials);
  EXPECT_GE(equal.tied, trials * 95 / 100);
  EXPECT_GE(two.tied, trials * 95 / 100);
  for (const std::vector<double>& speeds : {std::vector<double>{1, 0.55, 1.15}, {1, 1, 1.15}}) {
    const Outcome gap = simulate(speeds, trials);
    EXPECT_LE(gap.wrong, trials * 5 / 100);
    EXPECT_GE(gap.named, trials * 90 / 100);
  }
}

TEST(Spread, NeedsSeveralMachinesOfAKind) {
  const std::vector<Side> one = {{{0.0}}, {{0.1}}};
  EXPECT_EQ(spread_of(one).freedom, 0);
  EXPECT_NEAR(decisive_difference(one[0], one[1], {}, 2), std::log(1.15), 1e-12);
  const std::vector<Side> several = {{{0.0, 0.02}}, {{0.1}}};
  EXPECT_EQ(spread_of(several).freedom, 1);
  EXPECT_NEAR(spread_of(several).sigma, 0.02 / std::sqrt(2.0), 1e-12);
  EXPECT_EQ(machines_to_decide(1.0), 2u);
  EXPECT_GT(machines_to_decide(0.02), machines_to_decide(0.08));
}

}  // namespace
}  // namespace assay::report::ranking
