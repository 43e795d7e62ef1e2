// Collective cases over MPI, correct and with an injected fault; started by mpirun, one process per rank.
#include "suites/collective/collective.h"
#include "tests/support/case_runner.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace assay {
namespace {

using Changes = std::map<std::string, ParamValue>;

class CollectivesOverMpi : public testing::Test {
 protected:
  test::Outcome run(const Changes& changes, const std::set<Fault>& faults = {}) {
    static const Family family = collective_family();
    return test::run_case(family, changes, *comm_, faults);
  }
  const std::unique_ptr<Communicator> comm_ = make_mpi_communicator();
};

TEST_F(CollectivesOverMpi, EveryOpTypeAndFormIsCorrect) {
  for (const std::string op :
       {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "all_to_all_v", "send_recv"})
    for (const std::string dtype : {"f32", "bf16", "i64"})
      for (const bool in_place : {false, true})
        for (const std::string batching : {"batched", "isolated"})
          for (const std::int64_t bytes : {8, 1000003}) {
            if (batching == "isolated" && dtype != "f32") continue;  // types do not depend on the timing
            SCOPED_TRACE(fmt::format("{} {} {} {} in place: {}", op, dtype, batching, bytes, in_place));
            const test::Outcome out =
                run({{"op", op}, {"dtype", dtype}, {"inplace", in_place}, {"batching", batching}, {"bytes", bytes}});
            if (out.skipped) {
              // 8 bytes cannot always be divided between ranks; three ops have no in-place form.
              EXPECT_TRUE(bytes == 8 || in_place) << *out.skipped;
              continue;
            }
            EXPECT_TRUE(out.check("wrong_elements").passed)
                << testing::PrintToString(out.check("wrong_elements").detail);
            if (!in_place) {
              EXPECT_TRUE(out.check("changed_inputs").passed);
            }
            EXPECT_GT(*out.metric("busbw").value, 0);
            EXPECT_EQ(out.measurement.rank_medians.size(), static_cast<std::size_t>(comm_->size()));
          }
}

TEST_F(CollectivesOverMpi, AWrongElementOnTheLastRankFailsOnAllRanksAndIsNamed) {
  for (const std::string op :
       {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "all_to_all_v", "send_recv"})
    for (const bool in_place : {false, true}) {
      SCOPED_TRACE(op);
      const test::Outcome out =
          run({{"op", op}, {"bytes", std::int64_t{4096}}, {"inplace", in_place}}, {Fault::wrong_sum});
      if (out.skipped) continue;
      const Check& check = out.check("wrong_elements");
      EXPECT_FALSE(check.passed);
      EXPECT_EQ(check.value, 1);
      if (comm_->rank() == 0) {
        ASSERT_EQ(check.detail.size(), 1u);
        const std::string start = fmt::format("rank {}: element ", comm_->size() - 1);
        EXPECT_EQ(check.detail[0].substr(0, start.size()), start);
      }
    }
}

TEST_F(CollectivesOverMpi, BusBandwidthFollowsNcclTests) {
  const double n = comm_->size();
  const auto factor = [&](const std::string& op) {
    const test::Outcome out = run({{"op", op}, {"bytes", std::int64_t{65536}}});
    return *out.metric("busbw").value / *out.metric("algbw").value;
  };
  EXPECT_NEAR(factor("all_reduce"), 2 * (n - 1) / n, 1e-9);
  EXPECT_NEAR(factor("all_gather"), (n - 1) / n, 1e-9);
  EXPECT_NEAR(factor("send_recv"), 1, 1e-9);
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
