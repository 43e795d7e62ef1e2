// Supervisor and workers through run_plan(), both in this program: for ThreadSanitizer, which needs every thread
// instrumented and the program small. Runs are tested through the command line (tests/cli).
#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/record/run_dir.h"
#include "harness/run/run.h"
#include "harness/run/worker.h"
#include "tests/support/temporary_folder.h"
#include "tests/testbed/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string_view>

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::vector<Family>& families() {
  static const std::vector<Family> all = {probe_family()};
  return all;
}

class Supervised : public testing::Test {
 protected:
  void SetUp() override { setenv("ASSAY_CACHE", (dir_ / "cache").c_str(), 1); }

  RunRequest request(const std::string& ops) const {
    RunRequest request;
    request.plan.targets = {"probe"};
    request.plan.sets = {"probe.op=" + ops};
    request.plan.timeout_seconds = 60;
    request.limits.cpus = 1;
    // Only this host, whatever launcher surrounds the test.
    request.allocation.hosts = {{.name = this_host(), .slots = std::nullopt, .user = {}, .here = true}};
    request.out = dir_ / "run";
    return request;
  }
  // op -> record
  std::map<std::string, Record> records() const {
    std::map<std::string, Record> all;
    for (Record& record : read_run(dir_ / "run").final_records()) {
      const std::string op = record.params.at("op").get<std::string>();
      all[op] = std::move(record);
    }
    return all;
  }

  test::TemporaryFolder folder_;
  const fs::path dir_ = folder_.path();
};

TEST_F(Supervised, EveryCaseHasARecordEvenIfItsWorkerDies) {
  EXPECT_EQ(run_plan(request("ok,skip,fail,throw,kill,exit,sleep"), families()), ExitCode::failed);
  const auto all = records();
  ASSERT_EQ(all.size(), 7u);
  for (const auto& [op, status] : std::map<std::string, Status>{{"ok", Status::ok},
                                                                {"skip", Status::skipped},
                                                                {"fail", Status::failed},
                                                                {"throw", Status::error},
                                                                {"kill", Status::error},
                                                                {"exit", Status::error},
                                                                {"sleep", Status::ok}})
    EXPECT_EQ(all.at(op).status, status) << op << ": " << all.at(op).reason << "\n" << all.at(op).log;
  for (const auto& [op, kind] : std::map<std::string, FailureKind>{{"fail", FailureKind::wrong_result},
                                                                   {"throw", FailureKind::exception},
                                                                   {"kill", FailureKind::crashed},
                                                                   {"exit", FailureKind::crashed}}) {
    ASSERT_TRUE(all.at(op).failure) << op;
    EXPECT_EQ(all.at(op).failure->kind, kind) << op;
    EXPECT_EQ(all.at(op).failure->rank, 0) << op;
    EXPECT_EQ(all.at(op).failure->host, this_host()) << op;
  }
  EXPECT_FALSE(all.at("skip").failure || all.at("ok").failure);
  EXPECT_THAT(all.at("kill").reason, HasSubstr("SIGKILL"));
  EXPECT_THAT(all.at("exit").reason, HasSubstr("code 3"));
}

TEST_F(Supervised, AHangIsEndedAndTheTimelineKept) {
  // The limit must end the hang alone, however busy the machine is: it follows from what healthy cases take there.
  RunRequest healthy = request("ok,sleep");
  healthy.out = dir_ / "healthy";
  const auto began = std::chrono::steady_clock::now();
  ASSERT_EQ(run_plan(healthy, families()), ExitCode::ok);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - began;
  RunRequest asked = request("ok,hang,sleep");
  asked.plan.timeout_seconds = std::max(5.0, 3 * taken.count());
  asked.trace = true;
  EXPECT_EQ(run_plan(asked, families()), ExitCode::broken);
  const auto all = records();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all.at("ok").status, Status::ok) << all.at("ok").reason;
  EXPECT_THAT(all.at("hang").reason, HasSubstr("timeout"));
  EXPECT_EQ(all.at("hang").failure->kind, FailureKind::timeout);
  EXPECT_EQ(all.at("sleep").status, Status::ok) << all.at("sleep").reason;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  // One core: ThreadSanitizer cannot see into OpenMP's library, whose teams would raise false alarms.
  cpu_set_t cores, first;
  CPU_ZERO(&first);
  if (sched_getaffinity(0, sizeof cores, &cores) == 0)
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&first) == 0; ++core)
      if (CPU_ISSET(core, &cores)) CPU_SET(core, &first);
  if (CPU_COUNT(&first) == 1) (void)sched_setaffinity(0, sizeof first, &first);
  try {
    if (argc > 1 && std::string_view(argv[1]) == "worker") return assay::worker_main(assay::families());
  } catch (const assay::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
