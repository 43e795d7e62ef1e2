// A crosscheck of made-up outputs: which figures meet which, and what their ratios mean.
#include "harness/crosscheck/crosscheck.h"

#include "harness/core/error.h"
#include "harness/crosscheck/peer_tools.h"
#include "tests/support/runs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace assay::crosscheck {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// One line of the table of nccl-tests: out of place, then in place.
std::string line_of(std::int64_t bytes, double rate, const std::string& wrong = "0") {
  const double microseconds = 1e6 * static_cast<double>(bytes) / rate;
  return fmt::format("{} {} float sum -1 {} 1 1 {} 9 9 9 0\n", bytes, bytes / 4, microseconds, wrong);
}

std::string copies(const std::string& test, const std::string& matrix) {
  return fmt::format(R"(warning: a library
{{"nvbandwidth": {{"testcases": [{{"name": "{}", "status": "Passed", "bandwidth_matrix": {}}},
 {{"name": "other", "status": "Waived"}}]}}}})",
                     test, matrix);
}

Record sum_of(std::int64_t bytes, double algbw) {
  Record record =
      test::record_of(fmt::format("collective/op=all_reduce/bytes={}", bytes), {test::metric("algbw", algbw, "B/s")});
  record.params = {{"op", "all_reduce"}, {"bytes", bytes}};
  return record;
}

// Two GPUs and all_reduce_perf alone, which is as fast as ours.
class Crosscheck : public testing::Test {
 protected:
  Machine machine() {
    return {.find = [this](const std::string& name) { return name == tool ? "/bin/" + name : std::string(); },
            .gpus = [this] { return gpus; },
            .printed =
                [this](const std::vector<std::string>& command) {
                  commands.push_back(command);
                  return printed;
                },
            .run =
                [this](const std::filesystem::path&) {
                  ++runs;
                  return test::run_of(ours);
                }};
  }
  Result compare() {
    return compare_with_tools({.pairs = 6, .tolerance = 0.02, .sizes = {1024, 1024, {1024}}}, machine());
  }

  std::string tool = "all_reduce_perf";
  CudaProbe gpus{2, ""};
  std::string printed = line_of(1024, 1e9);
  std::vector<Record> ours = {sum_of(1024, 1e9)};
  std::vector<std::vector<std::string>> commands;
  int runs = 0;
};

TEST_F(Crosscheck, SidesThatAreAlikePass) {
  const Result result = compare();
  EXPECT_EQ(result.fitness(), Fitness::pass);
  EXPECT_EQ(runs, 6);
  ASSERT_EQ(commands.size(), 6U);
  EXPECT_THAT(commands.front(),
              ElementsAre("/bin/all_reduce_perf", "-b", "1024", "-e", "1024", "-f", "16", "-t", "2", "-g", "1"));
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_EQ(result.rows.front().test, "all_reduce");
  EXPECT_EQ(result.rows.front().bytes, 1024);
  EXPECT_NEAR(result.rows.front().ratio, 1, 1e-9);
  EXPECT_EQ(result.missing, 0U);
}

TEST_F(Crosscheck, ARatioBeyondTheToleranceFails) {
  printed = line_of(1024, 1.1e9);
  EXPECT_EQ(compare().fitness(), Fitness::fail);
  printed = line_of(1024, 0.9e9);
  EXPECT_EQ(compare().fitness(), Fitness::fail);
  printed = line_of(1024, 1.01e9);
  EXPECT_EQ(compare().fitness(), Fitness::pass);
}

TEST_F(Crosscheck, ASizeThatOneSideLacksIsNoPass) {
  printed += line_of(2048, 1e9);
  const Result result = compare();
  EXPECT_EQ(result.rows.size(), 1U);
  EXPECT_EQ(result.missing, 1U);
  EXPECT_EQ(result.fitness(), Fitness::unknown);
  EXPECT_THAT(result.remarks, Contains(HasSubstr("ours: no figure of all_reduce at 2")));
  EXPECT_THAT(result.remarks, Contains(HasSubstr("nvbandwidth is not on the PATH")));
}

TEST_F(Crosscheck, WhatOurRecordsSayIsSaid) {
  ours.front().flags = {"oversubscribed"};
  EXPECT_THAT(compare().remarks, Contains("ours: oversubscribed"));
  ours.front().status = Status::failed, ours.front().reason = "x";
  const Result result = compare();
  EXPECT_THAT(result.remarks, Contains(HasSubstr("failed: x")));
  EXPECT_THAT(result.rows, IsEmpty());
  EXPECT_EQ(result.fitness(), Fitness::unknown);
}

TEST_F(Crosscheck, WithoutGpusNothingIsRun) {
  gpus = {0, "no driver"};
  const Result result = compare();
  EXPECT_EQ(runs, 0);
  EXPECT_THAT(result.remarks, Contains("all_reduce_perf was not run: no driver"));
  EXPECT_EQ(result.fitness(), Fitness::unknown);
  gpus = {1, ""};
  EXPECT_THAT(compare().remarks, Contains(HasSubstr("takes two GPUs")));
  tool = "";
  gpus = {2, ""};
  EXPECT_THAT(compare().rows, IsEmpty());
  EXPECT_EQ(runs, 0);
}

TEST_F(Crosscheck, CopiesAreThoseOfTheFirstGpuOrOfTheSlowestPair) {
  const Tool& nvbandwidth = all_tools()[1];
  const Sizes sizes{1 << 20, 1 << 20, {1 << 20}};
  const auto figures = [&](const std::string& text) {
    return nvbandwidth.measure("/bin/nvbandwidth", sizes, 2, [&](const auto&) { return text; });
  };
  EXPECT_THAT(figures(copies("host_to_device_memcpy_ce", R"([["55", "99"]])")),
              ElementsAre(testing::Pair(testing::Pair("host_to_device_memcpy_ce", 1 << 20), 55e9)));
  EXPECT_THAT(figures(copies("device_to_device_memcpy_read_ce", R"([["N/A", "300"], ["200", "N/A"]])")),
              ElementsAre(testing::Pair(testing::Pair("device_to_device_memcpy_read_ce", 1 << 20), 200e9)));
  EXPECT_EQ(nvbandwidth.obstacle({1024, 1024, {1024}}, 2), "its sizes are whole MiB");
}

TEST(PeerTools, WrongElementsAndErrorsAreErrors) {
  EXPECT_THROW(read_all_reduce_perf(line_of(1024, 1e9, "3")), Error);
  EXPECT_THAT(read_all_reduce_perf(line_of(1024, 1e9, "N/A")), testing::SizeIs(1));
  EXPECT_THAT(read_all_reduce_perf("# size count\nno table\n"), IsEmpty());
  EXPECT_THROW(read_nvbandwidth("no JSON"), Error);
  EXPECT_THROW(read_nvbandwidth(R"({"nvbandwidth": {"error": "no device"}})"), Error);
  EXPECT_THROW(read_nvbandwidth(R"({"nvbandwidth": {}})"), Error);
  EXPECT_THROW(read_nvbandwidth(R"({"nvbandwidth": {"testcases": [{"name": "x", "status": "Error"}]}})"), Error);
  EXPECT_THAT(read_nvbandwidth(copies("x", R"([[1, "N/A"]])")), testing::SizeIs(1));
}

}  // namespace
}  // namespace assay::crosscheck
