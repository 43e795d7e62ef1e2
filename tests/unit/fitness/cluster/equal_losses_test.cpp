// Hosts that train by themselves must have the same loss.
#include "tests/unit/fitness/cluster/judge_support.h"

#include <gmock/gmock.h>

#include <cmath>

namespace assay::fitness {
namespace {

using testing::HasSubstr;

const std::vector<std::string> trainers = {"a", "b", "c", "d"};

Record trained(const std::string& host, double loss, const std::string& repeats = "to the bit") {
  Record record = record_on(host, 1000, "llama/model=llama-tiny", "tokens/s");
  record.metrics.push_back(test::metric("loss_step_10", loss, "1"));
  record.labels["repeats"] = repeats;
  record.choices["isa"] = "avx512";
  return record;
}

HostChecks judged_losses(std::vector<Record> records) {
  return judge_each_host({each_host(std::move(records))}, trainers, {});
}

const double loss = 5.25, other_bit = std::nextafter(loss, 6);

TEST(EqualLosses, OneBitFailsTheHost) {
  const auto checks =
      judged_losses({trained("a", loss), trained("b", loss), trained("c", other_bit), trained("d", loss)});
  EXPECT_EQ(state(checks, "a"), Fitness::pass);
  EXPECT_EQ(state(checks, "c"), Fitness::fail);
  EXPECT_THAT(text(checks.at("c")), HasSubstr("5.2500000000000009, that of 3 of 4 hosts is 5.25"));
  EXPECT_TRUE(checks.at("c").repeat.empty());  // a wrong result is not measured until it is right
}

TEST(EqualLosses, WithoutAMajorityNobodyIsRight) {
  const auto checks =
      judged_losses({trained("a", loss), trained("b", loss), trained("c", other_bit), trained("d", other_bit)});
  for (const std::string& host : trainers) EXPECT_EQ(state(checks, host), Fitness::unsure) << host;
}

TEST(EqualLosses, OtherKernelsMayRoundOtherwise) {
  Record other = trained("c", loss * 1.002);
  other.choices["isa"] = "avx2";
  EXPECT_EQ(state(judged_losses({trained("a", loss), trained("b", loss), other, trained("d", loss)}), "c"),
            Fitness::pass);
  other.metrics.back().value = loss * 1.05;
  EXPECT_EQ(state(judged_losses({trained("a", loss), trained("b", loss), other, trained("d", loss)}), "c"),
            Fitness::fail);
}

TEST(EqualLosses, BitsThatDoNotRepeatAreComparedByTolerance) {
  const std::string rounding = "up to rounding";
  const auto with = [&](double of_c) {
    return judged_losses({trained("a", loss, rounding), trained("b", loss, rounding), trained("c", of_c, rounding),
                          trained("d", loss, rounding)});
  };
  EXPECT_EQ(state(with(other_bit), "c"), Fitness::pass);
  EXPECT_EQ(state(with(loss / 2), "c"), Fitness::fail);
}

TEST(EqualLosses, GpusChooseTheirKernelsByTimeUnlessTheCaseSaysOtherwise) {
  const auto on_gpu = [&](bool deterministic) {
    std::vector<Record> records = {trained("a", loss), trained("b", loss), trained("c", other_bit), trained("d", loss)};
    for (Record& record : records) {
      record.device = "cuda";
      record.params = deterministic ? Json{{"deterministic", true}} : Json::object();
    }
    return state(judged_losses(std::move(records)), "c");
  };
  EXPECT_EQ(on_gpu(false), Fitness::pass);
  EXPECT_EQ(on_gpu(true), Fitness::fail);
}

TEST(EqualLosses, ACaseOfOneHostIsComparedWithNothing) {
  EXPECT_EQ(state(judged_losses({trained("a", loss)}), "a"), Fitness::pass);
}

}  // namespace
}  // namespace assay::fitness
