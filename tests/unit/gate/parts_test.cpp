// The job's GPUs, other jobs, past verdicts, and the machine of files that faults change.
#include "harness/gate/allotment.h"
#include "harness/gate/fault_machine.h"
#include "harness/gate/past.h"

#include "harness/core/error.h"
#include "harness/json/json.h"
#include "tests/unit/machine/fake_root.h"

#include <gtest/gtest.h>

#include <fstream>

namespace assay::gate {
namespace {

const std::vector<GpuHere> two{{"0000:1b:00.0", "GPU-aaaa", "H100"}, {"0000:4c:00.0", "GPU-bbbb", "H100"}};

std::vector<std::string> devices(const Allotment& allotment) { return allotment.scope().devices; }

TEST(GateAllotment, TheFlagGoesBeforeTheLauncher) {
  const Variables slurm{{"SLURM_JOB_GPUS", "1"}, {"CUDA_VISIBLE_DEVICES", "0"}};
  EXPECT_TRUE(find_allotment("", {}, two).all);
  EXPECT_EQ(devices(find_allotment("0", slurm, two)), std::vector<std::string>{"0000:1b:00.0"});
  EXPECT_EQ(devices(find_allotment("", slurm, two)), std::vector<std::string>{"0000:4c:00.0"});
  EXPECT_EQ(devices(find_allotment("GPU-bb", {}, two)), std::vector<std::string>{"0000:4c:00.0"});
  EXPECT_EQ(devices(find_allotment("0-1,0", {}, two)).size(), 2u);
  EXPECT_TRUE(find_allotment("0", {}, two).part(two.size()));
  EXPECT_FALSE(find_allotment("0-1", {}, two).part(two.size()));
}

TEST(GateAllotment, GpusThatAreNotThereAreMissing) {
  const Allotment slurm = find_allotment("", {{"SLURM_JOB_GPUS", "1,7"}}, two);
  EXPECT_EQ(slurm.missing, std::vector<std::string>{"7"});
  EXPECT_TRUE(slurm.certain);
  const Allotment visible = find_allotment("", {{"CUDA_VISIBLE_DEVICES", "GPU-cccc"}}, two);
  EXPECT_EQ(visible.missing.size(), 1u);
  EXPECT_FALSE(visible.certain);
  const Allotment none = find_allotment("", {{"CUDA_VISIBLE_DEVICES", "-1"}}, two);
  EXPECT_FALSE(none.all);
  EXPECT_TRUE(none.gpus.empty() && none.missing.empty());
}

TEST(GateAllotment, BadFlagsAreRefused) {
  for (const char* text : {"x", "1-", "3-1", "0,,1", "-1", "99999", "GPU-", "0-4294967296"})
    EXPECT_THROW(gpu_words("--gpus", text), UsageError) << text;
}

TEST(GateAllotment, OtherJobsAreSeenInBothKindsOfCgroups) {
  FakeRoot v2, v1;
  v2.file("sys/fs/cgroup/system.slice/n1_slurmstepd.scope/job_12/cgroup.procs", "")
      .file("sys/fs/cgroup/system.slice/n1_slurmstepd.scope/job_13/cgroup.procs", "")
      .file("sys/fs/cgroup/system.slice/n1_slurmstepd.scope/system/cgroup.procs", "");
  v1.file("sys/fs/cgroup/cpuset/slurm/uid_0/job_44/cpuset.cpus", "0");
  EXPECT_EQ(other_jobs(v2.root(), "13"), std::vector<std::string>{"12"});
  EXPECT_EQ(other_jobs(v1.root(), ""), std::vector<std::string>{"44"});
  EXPECT_TRUE(other_jobs(FakeRoot().root(), "").empty());
}

TEST(GatePast, RemembersAWeekAndStaysSmall) {
  test::TemporaryFolder folder;
  const auto file = folder.path() / "gate/host.jsonl";
  constexpr std::time_t now = 1800000000, day = 86400;
  const Decision suspect{Verdict::suspect, {{"ASSAY-CPU-001", "x", "", "", "", "", Severity::warning}}};
  EXPECT_EQ(read_past(file, now).text(7), "");
  remember(file, now - 8 * day, suspect);
  remember(file, now - day, suspect);
  remember(file, now - 10, suspect);
  std::ofstream(file, std::ios::app) << "{\"time\": \"20";  // cut short by a kill
  EXPECT_EQ(read_past(file, now).text(7), "suspect 2 times in the past 7 days");
  for (int i = 0; i < 6000; ++i) remember(file, now, suspect);
  EXPECT_LT(std::filesystem::file_size(file), 400u << 10);
  EXPECT_GT(read_past(file, now).suspect, 1000u);
}

TEST(GateFaults, EachInjectableFileFaultHasFiles) {
  const auto faults = std::filesystem::path(ASSAY_SOURCE) / "configs/gate-faults.json";
  const Catalogue catalogue = load_catalogue(std::filesystem::path(ASSAY_SOURCE) / "configs/gate.json");
  const Json json = read_json(faults);
  std::size_t of_files = 0;
  for (const Code& code : catalogue.codes) {
    if (code.inject != "files") continue;
    ++of_files;
    EXPECT_TRUE(json.at("faults").contains(code.id)) << code.id;
    test::TemporaryFolder folder;
    EXPECT_NO_THROW(write_machine(faults, code.id, folder.path())) << code.id;
  }
  EXPECT_GE(of_files, 30u);
  EXPECT_EQ(json.at("faults").size(), of_files);
  test::TemporaryFolder folder;
  EXPECT_THROW(write_machine(faults, "no-such-fault", folder.path()), UsageError);
}

}  // namespace
}  // namespace assay::gate
