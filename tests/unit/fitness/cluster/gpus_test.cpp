// The GPUs of one host: the slow one is named, alone and together; links between them; one that hangs.
#include "tests/unit/fitness/cluster/judge_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace assay::fitness {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::vector<std::string> one_host = {"h"};
const std::string alone_key = "gemm/m=64/gpus=each", together_key = "gemm/m=64/gpus=together";

std::string pci_of(int gpu) { return "0000:" + std::to_string(gpu) + "d:00.0"; }

// A product on a host's GPUs of these speeds, as the slowest one has it.
Record on_gpus(const std::string& key, const std::vector<double>& speeds, const std::string& host = "h") {
  Record record = test::record_of(key, {test::metric("throughput", std::ranges::min(speeds), "FLOP/s")});
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    const int gpu = static_cast<int>(i);
    record.ranks.push_back({gpu, host, "NVIDIA H100", 1 / speeds[i], "GPU-" + std::to_string(gpu), pci_of(gpu)});
  }
  record.world_ranks = static_cast<int>(speeds.size());
  record.device = "cuda";
  return record;
}

std::vector<double> eight(double usual, std::size_t other = 8, double its = 0) {
  std::vector<double> speeds(8, usual);
  if (other < 8) speeds[other] = its;
  return speeds;
}

FailedPart gpu(int number) { return {"gpu", pci_of(number)}; }

TEST(AcceptGpus, TheSlowOneIsNamedWithWhatItReachesAloneAndTogether) {
  Record together = on_gpus(together_key, eight(96, 5, 70));
  together.labels["sensors_of_rank_5"] = "89 degC, 1.41 GHz, 455 W";
  const Floors floors = floors_of(floor_of(90));
  const auto checks =
      judge_each_host({each_host({on_gpus(alone_key, eight(100, 5, 80)), together})}, one_host, {.user = &floors});
  const HostCheck& check = checks.at("h");
  EXPECT_EQ(check.state, Fitness::fail);
  EXPECT_THAT(check.culprits, ElementsAre(gpu(5)));
  EXPECT_EQ(check.figure, 70);
  EXPECT_THAT(text(check), HasSubstr("GPU 5 (0000:5d:00.0): gemm/m=64 80 FLOP/s alone, 70 FLOP/s together; 89 degC, "
                                     "1.41 GHz, 455 W"));
  EXPECT_THAT(text(check), HasSubstr("all 8 at once reach 95 % of what each reaches alone; least GPU 5"));
}

TEST(AcceptGpus, EverySlowOneIsNamed) {
  std::vector<double> speeds = eight(100, 2, 60);
  speeds[6] = 70;
  const Floors floors = floors_of(floor_of(90));
  const auto checks = judge_each_host({each_host({on_gpus(alone_key, speeds)})}, one_host, {.user = &floors});
  EXPECT_THAT(checks.at("h").culprits, ElementsAre(gpu(2), gpu(6)));
}

TEST(AcceptGpus, WhatPowerTakesWhenAllRunIsSaidAndIsNoFault) {
  const auto checks =
      judge_each_host({each_host({on_gpus(alone_key, eight(100)), on_gpus(together_key, eight(80))})}, one_host, {});
  EXPECT_EQ(state(checks, "h"), Fitness::pass);
  EXPECT_THAT(text(checks.at("h")), HasSubstr("gemm/m=64 throughput: all 8 at once reach 80 %"));
}

TEST(AcceptGpus, RanksOnCpusAreToldTheSameWay) {
  Record alone = on_gpus(alone_key, {100, 100}), together = on_gpus("gemm/m=64", {60, 50});
  for (Record* one : {&alone, &together}) {
    one->device = "cpu";
    for (RankResult& rank : one->ranks) rank.pci.clear(), rank.uuid.clear();
  }
  const auto checks = judge_each_host({each_host({alone, together})}, one_host, {});
  EXPECT_THAT(text(checks.at("h")),
              HasSubstr("all 2 at once reach 55 % of what each reaches alone; least rank 1: 50 %"));
}

TEST(AcceptGpus, ThoseOfOneHostAreAFleet) {
  const Floors fleet = floors_of(floor_of(0.95, true));
  const auto slow = judge_each_host({each_host({on_gpus(alone_key, eight(100, 5, 70))})}, one_host, {.fleet = &fleet});
  EXPECT_EQ(state(slow, "h"), Fitness::fail);
  EXPECT_THAT(slow.at("h").culprits, ElementsAre(gpu(5)));
  const auto well = judge_each_host({each_host({on_gpus(alone_key, {100, 99, 101, 98, 102, 97, 100, 101})})}, one_host,
                                    {.fleet = &fleet});
  EXPECT_EQ(state(well, "h"), Fitness::pass) << text(well.at("h"));
}

// Copies between GPUs of 300 B/s, but for those of one pair, both ways; nothing where it is 0.
Record copies(int gpus, int a, int b, double theirs, const std::string& host = "h") {
  Record record = test::record_of("transfer/direction=p2p", {test::metric("bandwidth", 1, "B/s")});
  for (int from = 0; from < gpus; ++from)
    for (int to = 0; to < gpus; ++to) {
      const bool is_pair = std::minmax(from, to) == std::minmax(a, b);
      if (from == to || (is_pair && theirs == 0)) continue;
      record.metrics.push_back(test::metric("bandwidth_" + std::to_string(from) + "_to_" + std::to_string(to),
                                            is_pair ? theirs : 300, "B/s"));
    }
  record.ranks.push_back({0, host, "NVIDIA H100", 1.0, "GPU-0", pci_of(0)});
  record.conditions["gpus"] = std::to_string(gpus);
  record.device = "cuda";
  return record;
}

TEST(AcceptGpus, ADeadNvlinkIsNamed) {
  for (const double speed : {20.0, 0.0}) {
    const auto checks = judge_each_host({each_host({copies(8, 2, 6, speed)})}, one_host, {});
    const HostCheck& check = checks.at("h");
    EXPECT_EQ(check.state, Fitness::fail);
    EXPECT_THAT(check.culprits, ElementsAre(FailedPart{"nvlink", "2-6"}));
    EXPECT_EQ(text_of(check.culprits.front(), {.host = "h"}), "NVLink 2-6");
    EXPECT_THAT(text(check), HasSubstr(speed > 0 ? "GPU 2 to GPU 6: 20 B/s; usual here are 300 B/s" : "no access"));
    EXPECT_THAT(check.repeat, ElementsAre("transfer/direction=p2p"));
  }
  EXPECT_EQ(state(judge_each_host({each_host({copies(8, 2, 6, 290)})}, one_host, {}), "h"), Fitness::pass);
}

TEST(AcceptGpus, AFastPairInTheSecondAttemptClearsIt) {
  const RunData first = each_host({copies(8, 2, 6, 20)}), second = each_host({copies(8, 2, 6, 299)}, "host-2");
  EXPECT_EQ(state(judge_each_host({first, second}, one_host, {}), "h"), Fitness::pass);
}

TEST(AcceptGpus, AGpuOfWhichEveryPairIsSlowIsNamedItself) {
  Record record = copies(8, 0, 0, 0);
  for (Metric& metric : record.metrics)
    if (metric.name.starts_with("bandwidth_5_") || metric.name.ends_with("_to_5")) metric.value = 30;
  const auto checks = judge_each_host({each_host({record, on_gpus(alone_key, eight(100))})}, one_host, {});
  EXPECT_THAT(checks.at("h").culprits, ElementsAre(gpu(5)));
}

TEST(AcceptGpus, PairsThatDifferByDesignAreComparedWithOtherHosts) {
  // Four GPUs in two bridged pairs, others over PCI Express.
  std::vector<Record> records;
  for (const char* host : {"a", "b", "c"}) {
    records.push_back(copies(4, 0, 0, 0, host));
    for (Metric& metric : records.back().metrics)
      if (metric.name != "bandwidth_0_to_1" && metric.name != "bandwidth_2_to_3" && metric.name != "bandwidth")
        metric.value = 40;
  }
  const auto well = judge_each_host({each_host(records)}, three_hosts, {});
  for (const std::string& host : three_hosts) EXPECT_EQ(state(well, host), Fitness::pass) << text(well.at(host));
  for (Metric& metric : records[1].metrics)
    if (metric.name == "bandwidth_2_to_3") metric.value = 40;
  const auto slow = judge_each_host({each_host(records)}, three_hosts, {});
  EXPECT_EQ(state(slow, "a"), Fitness::pass);
  EXPECT_THAT(slow.at("b").culprits, ElementsAre(FailedPart{"nvlink", "2-3"}));
  std::string unjudged;
  judge_each_host({each_host(records)}, three_hosts, {.unjudged = &unjudged});
  EXPECT_EQ(unjudged, "");
  for (Metric& metric : records[0].metrics)
    if (metric.name.starts_with("bandwidth_0_")) metric.value = 120;
  judge_each_host({each_host({records[0]})}, {"a"}, {.unjudged = &unjudged});
  EXPECT_THAT(unjudged, testing::EndsWith("were not judged: a"));
}

// GPU 5 hangs in a case of all eight.
Record hung() {
  Record record = on_gpus(together_key, eight(100));
  record.metrics.clear();
  for (RankResult& rank : record.ranks) rank.median.reset();
  record.status = Status::error;
  record.reason = "timeout: not done after 60 s: rank 5 on h";
  record.failure = {.kind = FailureKind::timeout, .rank = 5, .host = "h"};
  return record;
}

TEST(AcceptGpus, OneThatHangsIsNamedAndTheOtherSevenAreJudged) {
  const RunData first = each_host({hung()});
  const auto bad = gpus_that_held_up(first, one_host);
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_THAT(bad.at("h").ranks, ElementsAre(5));
  EXPECT_THAT(bad.at("h").keys, ElementsAre(together_key));
  const auto unsure = judge_each_host({first}, one_host, {});
  EXPECT_EQ(state(unsure, "h"), Fitness::unsure);
  EXPECT_THAT(unsure.at("h").culprits, ElementsAre(gpu(5)));
  // Seven GPUs, of which the third is slow.
  const Floors floors = floors_of(floor_of(90));
  const RunData rest = each_host({on_gpus(together_key, {100, 100, 50, 100, 100, 100, 100})}, "host-2");
  const auto checks = judge_each_host({first, rest}, one_host, {.user = &floors});
  EXPECT_EQ(state(checks, "h"), Fitness::fail);
  EXPECT_THAT(checks.at("h").culprits, ElementsAre(gpu(5), gpu(2)));
  EXPECT_THAT(text(checks.at("h")), HasSubstr("rank 5 on h"));
}

TEST(AcceptGpus, ACaseThatNoRankHeldUpIsNobodysHang) {
  Record broken = hung();
  broken.failure->kind = FailureKind::exception;
  EXPECT_THAT(gpus_that_held_up(each_host({broken}), one_host), IsEmpty());
  Record two = hung();
  two.ranks.resize(2), two.world_ranks = 2, two.failure->rank = 1;
  Record first = two;
  first.key = alone_key, first.failure->rank = 0;
  EXPECT_THAT(gpus_that_held_up(each_host({two, first}), one_host), IsEmpty());  // none is left
}

}  // namespace
}  // namespace assay::fitness
