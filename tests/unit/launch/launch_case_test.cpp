// Launch cases from setup to metrics.
#include "harness/device/cpu/team.h"
#include "suites/launch/launch.h"
#include "tests/support/case_runner.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(LaunchCase, EveryTaskRunsOnce) {
  const auto comm = make_self_communicator();
  const Family family = launch_family();
  for (const std::string op : {"fork_join", "handoff_spin", "handoff_block"}) {
    SCOPED_TRACE(op);
    const test::Outcome out = test::run_case(family, {{"op", op}}, *comm);
    if (cpu::rank_cores() < 2) {
      EXPECT_TRUE(out.skipped);
      continue;
    }
    EXPECT_TRUE(out.check("lost_or_repeated_tasks").passed);
    EXPECT_GT(*out.metric("latency").value, 0);
    EXPECT_LT(*out.metric("latency").value, out.measurement.summary.median + 1e-12);
  }
}

}  // namespace
}  // namespace assay
