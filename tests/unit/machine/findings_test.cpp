// Findings on fake machines: each spoiler is found where it is, and nowhere else.
#include "harness/machine/spoilers.h"
#include "tests/unit/machine/fake_machines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::vector<Finding> found(const FakeRoot& fake, const Circumstances& circumstances = {}) {
  auto machine = probe_machine(fake.root());
  machine.memory.shm_bytes.reset();  // the file system of the test's folder
  return find_spoilers(machine, circumstances);
}

std::vector<std::string> ids(const std::vector<Finding>& findings) {
  std::vector<std::string> all;
  for (const auto& finding : findings) all.push_back(finding.id);
  return all;
}

const Finding& named(const std::vector<Finding>& findings, const std::string& id) {
  for (const auto& finding : findings)
    if (finding.id == id) return finding;
  throw std::runtime_error("no finding " + id);
}

TEST(Findings, BareMetal) {
  FakeRoot fake;
  make_bare_metal(fake);
  const auto findings = found(fake);
  EXPECT_THAT(ids(findings),
              testing::ElementsAre("governor", "clocksource", "huge-pages", "numa-balancing", "turbo-on", "smt"));
  EXPECT_THAT(named(findings, "governor").seen, HasSubstr("schedutil on 1 of 4"));
  EXPECT_THAT(named(findings, "governor").fix, HasSubstr("performance"));
  for (const auto& finding : findings) {
    EXPECT_FALSE(finding.seen.empty());
    EXPECT_FALSE(finding.meaning.empty());
    EXPECT_FALSE(finding.fix.empty()) << finding.id;
  }
}

TEST(Findings, AWellConfiguredMachineHasNone) {
  FakeRoot fake;
  make_bare_metal(fake);
  fake.file("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "performance")
      .file("sys/devices/system/cpu/cpufreq/boost", "0")
      .file("sys/devices/system/cpu/smt/active", "0")
      .file("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never")
      .file("proc/sys/kernel/numa_balancing", "0")
      .file("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc");
  EXPECT_THAT(ids(found(fake)), testing::ElementsAre());
}

TEST(Findings, Container) {
  FakeRoot fake;
  make_container(fake);
  const auto findings = found(fake);
  for (const auto* id : {"cpu-quota", "cpu-affinity", "memory-limit", "address-space", "swap", "open-files",
                         "no-cpufreq", "turbo-unknown", "memory-in-use"})
    EXPECT_THAT(ids(findings), Contains(id));
  EXPECT_THAT(named(findings, "cpu-quota").seen, HasSubstr("1.5"));
  EXPECT_THAT(named(findings, "memory-limit").seen, HasSubstr("2.0 GiB of"));
  EXPECT_THAT(ids(findings), Not(Contains("virtual-machine")));
}

TEST(Findings, GpusOfAnInstance) {
  FakeRoot fake;
  make_aws_p5(fake);
  EXPECT_THAT(named(found(fake), "gpu-link-width").seen, HasSubstr("0000:64:00.0: x8 of x16"));
  EXPECT_THAT(ids(found(fake)), Not(Contains("gpu-driver")));
  fake.remove("sys/bus/pci/devices/0000:64:00.0/driver");
  EXPECT_THAT(named(found(fake), "gpu-driver").seen, HasSubstr("0000:64:00.0"));
}

// A virtual machine of two CPUs that shows the whole L3 of a processor of many cores.
TEST(Findings, ACacheOfMoreCpusThanTheMachineShows) {
  const auto seen = [](const std::string& size, const std::string& flags) {
    FakeRoot fake;
    add_cpus(fake, 2, 1, "Intel(R) Xeon(R) Processor", flags);
    for (const std::string cpu : {"cpu0", "cpu1"})
      fake.file("sys/devices/system/cpu/" + cpu + "/cache/index3/size", size);
    return found(fake);
  };
  EXPECT_THAT(named(seen("491520K", "avx2 hypervisor"), "virtual-cache").seen,
              HasSubstr("L3 of 480 MiB behind 2 CPUs"));
  EXPECT_THAT(named(seen("1152M", "avx2 hypervisor"), "virtual-cache").seen, HasSubstr("L3 of 1.1 GiB behind 2 CPUs"));
  EXPECT_THAT(ids(seen("16384K", "avx2 hypervisor")), Not(Contains("virtual-cache")));
  EXPECT_THAT(ids(seen("491520K", "avx2")), Not(Contains("virtual-cache")));
}

TEST(Findings, StealNowOrSinceBoot) {
  FakeRoot fake;
  make_azure(fake);
  EXPECT_THAT(named(found(fake), "steal").seen, HasSubstr("25.0 %"));
  FakeRoot quiet;
  make_gcp(quiet);
  EXPECT_THAT(ids(found(quiet)), Not(Contains("steal")));
  EXPECT_THAT(named(found(quiet, {.activity = {.busy = {}, .steal = 0.07}}), "steal").seen, HasSubstr("7.0 %"));
}

TEST(Findings, OtherLoadIsNamed) {
  FakeRoot fake;
  make_gcp(fake);
  EXPECT_THAT(ids(found(fake)), Not(Contains("other-load")));
  const auto findings = found(fake, {.activity = {.busy = {{42, "stress", 0.97}}, .steal = {}}});
  EXPECT_THAT(named(findings, "other-load").seen, HasSubstr("stress (pid 42, 97 %)"));
  fake.file("proc/loadavg", "3.50 1.0 1.0 1/95 100");
  EXPECT_THAT(ids(found(fake)), Contains("recent-load"));
}

TEST(Findings, ABlasThatMisdetectsTheCpu) {
  FakeRoot fake;
  make_container(fake);
  const auto about = [&](const std::string& core) {
    return found(fake, {.activity = {}, .blas = BlasCore{"0.3.21", core}});
  };
  EXPECT_THAT(named(about("Prescott"), "blas").seen, HasSubstr("for Prescott"));
  EXPECT_THAT(named(about("Haswell"), "blas").fix, HasSubstr("OPENBLAS_CORETYPE=SkylakeX"));
  EXPECT_THAT(ids(about("SkylakeX")), Not(Contains("blas")));
  EXPECT_THAT(ids(about("Cooperlake")), Not(Contains("blas")));
  FakeRoot older;
  make_gcp(older);  // avx2 alone
  EXPECT_THAT(ids(found(older, {.activity = {}, .blas = BlasCore{"0.3.21", "Haswell"}})), Not(Contains("blas")));
  EXPECT_THAT(ids(found(older, {.activity = {}, .blas = BlasCore{"0.3.21", "Nehalem"}})), Contains("blas"));
}

TEST(Findings, DebugBuildAndSmallSharedMemory) {
  FakeRoot fake;
  make_gcp(fake);
  EXPECT_THAT(ids(found(fake, {.activity = {}, .blas = {}, .build_type = "Debug"})), Contains("debug-build"));
  auto machine = probe_machine(fake.root());
  machine.memory.shm_bytes = std::uint64_t{64} << 20;
  EXPECT_THAT(named(find_spoilers(machine, {}), "shm").fix, HasSubstr("256M"));
  machine.memory.shm_bytes = std::uint64_t{256} << 20;
  EXPECT_THAT(ids(find_spoilers(machine, {})), Not(Contains("shm")));
}

TEST(Findings, WarningsComeFirst) {
  FakeRoot fake;
  make_container(fake);
  const auto findings = found(fake);
  for (std::size_t i = 1; i < findings.size(); ++i) EXPECT_GE(findings[i - 1].severity, findings[i].severity);
}

TEST(Observe, NamesProcessesThatWereBusyMeanwhile) {
  FakeRoot fake;
  fake.file("sys/devices/system/cpu/online", "0-1").file("proc/stat", "cpu 100 0 0 100 0 0 0 0");
  const auto process = [&](int pid, const std::string& name, int ticks, const std::string& flags = "0") {
    fake.file("proc/" + std::to_string(pid) + "/stat", std::to_string(pid) + " (" + name + ") R 1 1 1 0 -1 " + flags +
                                                           " 0 0 0 0 " + std::to_string(ticks) + " 5 0 0 20");
  };
  process(10, "my (odd) name", 100);
  process(11, "idle", 50);
  process(12, "kworker", 0, "2129984");
  process(13, "assay", 0);
  fake.link("proc/self", "13");
  const auto activity = observe(fake.root(), [&] {
    fake.file("proc/stat", "cpu 240 0 0 150 0 0 0 10");  // 200 ticks over 2 CPUs
    process(10, "my (odd) name", 190);
    process(11, "idle", 51);
    process(12, "kworker", 90, "2129984");
    process(13, "assay", 90);
    process(14, "newborn", 90);
  });
  ASSERT_EQ(activity.busy.size(), 1u);
  EXPECT_EQ(activity.busy[0].pid, 10);
  EXPECT_EQ(activity.busy[0].name, "my (odd) name");
  EXPECT_DOUBLE_EQ(activity.busy[0].cpus, 0.9);
  EXPECT_EQ(activity.steal, 0.05);
}

TEST(Observe, IsEmptyWithoutTheFiles) {
  FakeRoot fake;
  const auto activity = observe(fake.root(), [] {});
  EXPECT_TRUE(activity.busy.empty());
  EXPECT_EQ(activity.steal, std::nullopt);
}

}  // namespace
}  // namespace assay
