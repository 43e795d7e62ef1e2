// The job's GPUs, other jobs, past verdicts, and the machine of files that faults change.
#include "harness/fitness/gate/allotment.h"
#include "harness/fitness/gate/fault_machine.h"
#include "harness/fitness/gate/past.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/json/json.h"
#include "tests/unit/machine/fake_root.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace assay::gate {
namespace {

const std::string first = "0000:1b:00.0", second = "0000:4c:00.0";
const std::vector<GpuHere> two{{.pci = first, .uuid = "GPU-aaaa", .name = "H100", .mig = false},
                               {.pci = second, .uuid = "GPU-bbbb", .name = "H100", .mig = false}};

using Texts = std::vector<std::string>;

// The GPUs that count.
Texts devices(const Allotment& allotment) {
  Texts found;
  for (const GpuHere& gpu : allotment.gpus) found.push_back(gpu.pci);
  return found;
}

Allotment visible(const std::string& text, const std::vector<GpuHere>& here = two) {
  return find_allotment("", {{"CUDA_VISIBLE_DEVICES", text}}, here);
}

// Whether every GPU counts because of a name that could not be mapped, and the answer can say so.
bool all_count(const Allotment& allotment, std::size_t here) {
  return allotment.all && allotment.gpus.size() == here && allotment.scope({}).others.empty() &&
         allotment.unmapped.size() + allotment.missing.size() > 0;
}

TEST(GateAllotment, TheFlagGoesBeforeTheLauncher) {
  const Variables slurm{{"SLURM_JOB_GPUS", "1"}, {"CUDA_VISIBLE_DEVICES", "0"}};
  EXPECT_TRUE(find_allotment("", {}, two).all);
  EXPECT_EQ(devices(find_allotment("0", slurm, two)), Texts{first});
  EXPECT_EQ(devices(find_allotment("", slurm, two)), Texts{second});
  EXPECT_EQ(find_allotment("", slurm, two).scope(two).others, Texts{first});
  EXPECT_EQ(devices(find_allotment("GPU-bb", {}, two)), Texts{second});
  EXPECT_EQ(devices(find_allotment("GPU-BB", {}, two)), Texts{second});
  EXPECT_EQ(devices(find_allotment("0-1,0", {}, two)).size(), 2u);
  EXPECT_TRUE(find_allotment("0", {}, two).part(two.size()));
  EXPECT_FALSE(find_allotment("0-1", {}, two).part(two.size()));
}

TEST(GateAllotment, GpusThatAreNotThereAreMissing) {
  const Allotment slurm = find_allotment("", {{"SLURM_JOB_GPUS", "1,7"}}, two);
  EXPECT_EQ(slurm.missing, Texts{"7"});
  EXPECT_TRUE(slurm.certain);
  const Allotment unknown = visible("GPU-cccc");
  EXPECT_EQ(unknown.missing.size(), 1u);
  EXPECT_FALSE(unknown.certain);
  EXPECT_TRUE(all_count(unknown, 2));
  EXPECT_EQ(find_allotment("MIG-1234", {}, two).missing, Texts{"MIG-1234"});  // neither GPU is divided
}

TEST(GateAllotment, OnlyWordsForItMeanNoGpu) {
  for (const char* text : {"-1", "NoDevFiles", "none", " -1", "-1,0"}) {
    const Allotment none = visible(text);
    EXPECT_TRUE(none.none && none.gpus.empty() && none.missing.empty()) << text;
    EXPECT_EQ(none.scope(two).others.size(), 2u) << text;
  }
  EXPECT_EQ(devices(visible("1,-1,0")), Texts{second});  // as CUDA reads it
  for (const char* text : {"", " "}) EXPECT_EQ(visible(text).gpus.size(), 2u) << "as if it were not set";
  for (const char* text : {"void", "all", "gpu0", "0x1", "0,,1", "GPU-", "1-0", "12345"})
    EXPECT_TRUE(all_count(visible(text), 2)) << text;
}

TEST(GateAllotment, ASliceIsItsGpu) {
  std::vector<GpuHere> here = two;
  here[1].mig = true;
  // The driver does not say whose it is: every GPU counts.
  for (const char* text :
       {"MIG-41b3359c-e721-56e5-8009-12e5797ed514", "MIG-4", "0,MIG-41b3359c", "MIG-GPU-cccc/1/0,MIG-4"})
    EXPECT_TRUE(all_count(visible(text, here), 2)) << text;
  EXPECT_TRUE(all_count(find_allotment("MIG-41b3359c", {}, here), 2));
  here[1].slices = {"MIG-41b3359c-e721-56e5-8009-12e5797ed514", "MIG-52c4"};
  for (const char* text :
       {"MIG-41b3359c-e721-56e5-8009-12e5797ed514", "MIG-41", "MIG-41,MIG-52c4,MIG-41", "MIG-GPU-bbbb/1/0"}) {
    EXPECT_EQ(devices(visible(text, here)), Texts{second}) << text;
    EXPECT_TRUE(visible(text, here).unmapped.empty()) << text;
  }
  EXPECT_EQ(visible("MIG-9", here).missing, Texts{"MIG-9"});
  // Tests run on the slice; on all slices of a GPU of which none is named.
  const auto on = [&](const std::string& flag) {
    Texts found;
    for (const Target& one : find_allotment(flag, {}, here).targets(here))
      found.push_back(one.device + "=" + one.visible);
    return found;
  };
  EXPECT_EQ(on("MIG-52c4,MIG-52c4"), Texts{second + " MIG-52c4=MIG-52c4"});
  EXPECT_EQ(on("0-1").size(), 3u);
}

TEST(GateAllotment, IndicesAreMappedOnlyWhereTheyAreClear) {
  const Variables slurm{{"SLURM_JOB_GPUS", "1"}};
  std::vector<GpuHere> here = two;
  here[0].mig = true;  // 1 may be a slice
  EXPECT_TRUE(all_count(visible("1", here), 2));
  EXPECT_TRUE(all_count(find_allotment("", slurm, here), 2));
  EXPECT_EQ(devices(find_allotment("1", {}, here)), Texts{second});  // a person's indices count GPUs
  here = two;
  here[0].shown = false;  // hidden from this job: CUDA does not count it
  EXPECT_EQ(devices(visible("0", here)), Texts{second});
  EXPECT_EQ(devices(find_allotment("", slurm, here)), Texts{second});
  here[0].lost = true;  // nor this, but the launcher may
  EXPECT_TRUE(all_count(visible("0", here), 2));
  here = two;
  here[0].name = "A100";  // CUDA counts by speed
  EXPECT_TRUE(all_count(visible("1", here), 2));
  EXPECT_EQ(devices(find_allotment("", {{"CUDA_VISIBLE_DEVICES", "1"}, {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}}, here)),
            Texts{second});
  here = two;
  here[0].uuid.clear();
  EXPECT_TRUE(all_count(visible("GPU-cccc", here), 2));
  EXPECT_EQ(devices(visible("GPU-bbbb", here)), Texts{second});
}

TEST(GateAllotment, TestsRunWhereTheyDisturbNobodyAndReachTheGpu) {
  std::vector<GpuHere> here = two;
  here[0].clients = 1;
  EXPECT_FALSE(find_allotment("", {}, here).targets(here).at(0).why_not.empty());
  EXPECT_TRUE(find_allotment("0", {}, here).targets(here).at(0).why_not.empty());  // named, so it is the job's
  here = two;
  here[0].shown = false;
  here[0].uuid.clear();
  EXPECT_EQ(find_allotment("", {}, here).targets(here).size(), 1u);  // another container's
  EXPECT_FALSE(find_allotment("0", {}, here).targets(here).at(0).why_not.empty());
  here[1].uuid.clear();  // no driver names them: by index
  EXPECT_EQ(find_allotment("1", {}, here).targets(here).at(0).visible, "1");
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
  const Catalogue catalogue = load_catalogue(std::filesystem::path(ASSAY_SOURCE) / "configs/gate.json");
  const Decision suspect{Fitness::unsure, {{"gpu-hot", Severity::warning, "", "", ""}}};
  EXPECT_EQ(read_past(file, now).text(), "");
  remember(file, now - 8 * day, suspect, catalogue);
  remember(file, now - day, suspect, catalogue);
  remember(file, now - 10, suspect, catalogue);
  std::ofstream(file, std::ios::app) << "{\"time\": \"20";  // cut short by a kill
  EXPECT_EQ(read_past(file, now).text(), "suspect 2 times in the past 7 days");
  remember(file, now - 5, suspect, catalogue);
  EXPECT_EQ(read_past(file, now).text(), "suspect 3 times in the past 7 days") << "behind the line that was cut short";
  EXPECT_THAT(read_whole(file, 1 << 20), testing::HasSubstr(R"({"code":"ASSAY-GPU-012","device":""})"));
  for (int i = 0; i < 6000; ++i) remember(file, now, suspect, catalogue);
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
