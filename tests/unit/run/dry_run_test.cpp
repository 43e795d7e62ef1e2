// --dry-run with worlds that do not fit.
#include "harness/run/dry_run.h"

#include "harness/core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::HasSubstr;

TEST(DryRun, AWorldThatThePlanAsksForAndThatHasTooFewGpusIsSkippedAsInTheRun) {
  RunRequest request;
  request.plan.device = DeviceKind::cuda;
  request.allocation.hosts = {{.name = "here", .slots = std::nullopt, .user = {}, .here = true}};
  HostInfo host = probe_host(1);
  host.name = "here";
  Plan plan;
  for (const int ranks : {1, 2}) {
    plan.cases.emplace_back();
    plan.cases.back().ranks = ranks;
  }
  const std::string printed = dry_run_text(request, plan, {host});
  EXPECT_THAT(printed, HasSubstr("cases of 2 ranks are skipped: --ranks 2: this host has 1 GPU"));
  EXPECT_THAT(printed, HasSubstr("NUMA  GPU  CPUs\n    1      0  here"));
  request.plan.ranks = {1, 2};  // requested, so refused
  EXPECT_THROW(dry_run_text(request, plan, {host}), UsageError);
}

}  // namespace
}  // namespace assay
