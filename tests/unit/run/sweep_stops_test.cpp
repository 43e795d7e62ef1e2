// Where a sweep over micro-batches ends.
#include "harness/run/sweep_stops.h"

#include "harness/statistics/knee.h"
#include "tests/support/runs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

namespace assay {
namespace {

std::string key(std::int64_t micro_batch) {
  return fmt::format("transformer/model=gpt2-tiny/micro_batch={}/seq=128", micro_batch);
}

Record measured(std::int64_t micro_batch, std::optional<double> rate, const char* sweep = "micro_batch") {
  Record record = test::record_of(key(micro_batch), {test::metric("throughput", rate, "tokens/s")});
  if (sweep) record.labels["sweep"] = sweep;
  return record;
}

// How many values of the sweep 1, 2, 4, ... run, if a value has this rate.
std::vector<std::int64_t> values_run(double (*rate)(std::int64_t)) {
  SweepStops stops;
  std::vector<std::int64_t> run;
  for (std::int64_t value = 1; value <= 4096; value *= 2) {
    if (stops.past(key(value), "micro_batch", 1)) continue;
    run.push_back(value);
    stops.learn(measured(value, rate(value)));
  }
  return run;
}

TEST(SweepStops, TwoDoublingsAfterTheKnee) {
  // 8 reaches the most: 16 and 32 show that it does.
  EXPECT_THAT(
      values_run([](std::int64_t value) { return 100 * static_cast<double>(std::min<std::int64_t>(value, 8)); }),
      testing::ElementsAre(1, 2, 4, 8, 16, 32));
  EXPECT_EQ(values_run([](std::int64_t value) { return static_cast<double>(value); }).size(), 13u) << "no knee";
  EXPECT_THAT(values_run([](std::int64_t) { return 1.0; }), testing::ElementsAre(1, 2, 4));
}

TEST(SweepStops, OnlyWhatIsKnownOfThatSweepEndsIt) {
  SweepStops stops;
  for (const std::int64_t value : {1, 2, 4}) stops.learn(measured(value, 100));
  EXPECT_THAT(stops.past(key(8), "micro_batch", 1).value(), testing::HasSubstr("micro_batch=1"));
  EXPECT_FALSE(stops.past(key(8), "micro_batch", 2)) << "another world";
  EXPECT_FALSE(stops.past(key(8), "seq", 1)) << "another parameter";
  EXPECT_FALSE(stops.past("transformer/model=gpt2-124m/micro_batch=8/seq=128", "micro_batch", 1)) << "another case";
  SweepStops others;
  Record failed = measured(1, 100);
  failed.status = Status::failed;
  others.learn(failed);
  others.learn(measured(1, 100, nullptr));
  others.learn(measured(1, std::nullopt));
  EXPECT_FALSE(others.past(key(64), "micro_batch", 1));
}

TEST(Knee, IsTheFirstRateNearTheBest) {
  using Rates = std::vector<std::optional<double>>;
  EXPECT_FALSE(knee_of(Rates{}));
  EXPECT_FALSE(knee_of(Rates{std::nullopt}));
  EXPECT_EQ(knee_of(Rates{std::nullopt, 50, 98, 100, 90}), 2u);
  EXPECT_EQ(knee_of(Rates{96, 100}), 1u);
}

}  // namespace
}  // namespace assay
