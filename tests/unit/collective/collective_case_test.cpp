// Collective cases from setup to metrics, on one rank and over threads.
#include "suites/collective/collective.h"
#include "tests/support/case_runner.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

using Changes = std::map<std::string, ParamValue>;

Changes changes(const std::string& op, std::int64_t bytes, bool in_place, const std::string& dtype = "f32") {
  return {{"op", op}, {"bytes", bytes}, {"inplace", in_place}, {"dtype", dtype}, {"batching", std::string("isolated")}};
}

test::Outcome run(const Changes& change, const std::set<Fault>& faults = {}) {
  const auto comm = make_self_communicator();
  return test::run_case(collective_family(), change, *comm, faults);
}

TEST(CollectiveCase, OneRankTimesCopiesAndHasNoBusBandwidth) {
  for (const std::string op :
       {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "all_to_all_v", "send_recv"})
    for (const bool in_place : {false, true})
      for (const std::string dtype : {"f32", "bf16", "i64"}) {
        SCOPED_TRACE(op + " " + dtype);
        const test::Outcome out = run(changes(op, 4099, in_place, dtype));
        if (in_place && (op.starts_with("all_to_all") || op == "send_recv")) {
          EXPECT_EQ(out.skipped, op + " has no in-place form");
          continue;
        }
        ASSERT_FALSE(out.skipped) << *out.skipped;
        EXPECT_TRUE(out.check("wrong_elements").passed);
        EXPECT_FALSE(out.metric("busbw").value);
        EXPECT_GT(*out.metric("algbw").value, 0);
        EXPECT_EQ(out.labels.at("bytes_used"), dtype == "f32" ? "4096" : dtype == "bf16" ? "4098" : "4096");
        EXPECT_EQ(out.protocol.batching, Protocol::Batching::isolated);
        EXPECT_EQ(out.choices.at("implementation"), "self");
      }
}

TEST(CollectiveCase, SingleCallsAreReportedBesideTheMean) {
  const test::Outcome out = run(changes("all_reduce", 4096, false));
  const double calls = std::stod(out.labels.at("single_calls"));
  EXPECT_LE(*out.metric("latency_p50").value, *out.metric("latency_max").value);
  EXPECT_EQ(calls >= 100, std::ranges::any_of(out.metrics, [](const Metric& m) { return m.name == "latency_p99"; }));
}

TEST(CollectiveCase, AWrongElementFailsAndIsNamed) {
  const test::Outcome out = run(changes("all_reduce", 4096, true), {Fault::wrong_sum});
  const Check& check = out.check("wrong_elements");
  EXPECT_FALSE(check.passed);
  EXPECT_EQ(check.value, 1);
  ASSERT_EQ(check.detail.size(), 1u);
  EXPECT_EQ(check.detail[0].substr(0, 23), "rank 0: element 512 is ");
}

TEST(CollectiveCase, NothingLeftAfterRoundingIsASkip) {
  EXPECT_EQ(run(changes("all_reduce", 4, false, "i64")).skipped, "4 bytes hold no element of i64 for each of 1 ranks");
}

}  // namespace
}  // namespace assay
