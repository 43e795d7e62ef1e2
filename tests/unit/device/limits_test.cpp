// Memory and CPU limits from fake /proc and /sys trees.
#include "harness/device/cpu/limits.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace assay::cpu {
namespace {

namespace fs = std::filesystem;

class LimitsTest : public testing::Test {
 protected:
  LimitsTest() { write("proc/meminfo", "MemTotal:       1000000 kB\nMemFree:  5 kB\nMemAvailable:    800000 kB\n"); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  test::TemporaryFolder folder_;
  const fs::path root_ = folder_.path();
};

TEST_F(LimitsTest, AMachineWithoutGroups) {
  const MemoryLimits limits = memory_limits(root_);
  EXPECT_EQ(limits.machine_total, 1024000000u);
  EXPECT_EQ(limits.machine_available, 819200000u);
  EXPECT_FALSE(limits.cgroup_limit);
  EXPECT_FALSE(cpu_quota(root_));
}

TEST_F(LimitsTest, UnifiedGroupsAreSearchedUpwards) {
  write("proc/self/cgroup", "0::/pod/job\n");
  write("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
  write("sys/fs/cgroup/pod/memory.max", "300000000\n");
  write("sys/fs/cgroup/pod/memory.current", "250000000\n");
  write("sys/fs/cgroup/pod/memory.stat", "anon 1\ninactive_file 50000000\n");
  write("sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/pod/job/memory.max", "max\n");
  write("sys/fs/cgroup/pod/job/cpu.max", "max 100000\n");
  const MemoryLimits limits = memory_limits(root_);
  EXPECT_EQ(limits.cgroup_limit, 300000000u);
  EXPECT_EQ(limits.cgroup_available, 100000000u);  // the file cache is reclaimable
  EXPECT_LE(limits.usable(), 300000000u);
  EXPECT_LE(limits.available(), 100000000u);
  EXPECT_EQ(cpu_quota(root_), 1.5);
}

TEST_F(LimitsTest, InAContainerTheMountIsTheGroup) {
  write("proc/self/cgroup", "7:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "400000000\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "100000000\n");
  write("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 0\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  const MemoryLimits limits = memory_limits(root_);
  EXPECT_EQ(limits.cgroup_limit, 400000000u);
  EXPECT_EQ(limits.cgroup_available, 300000000u);
  EXPECT_EQ(cpu_quota(root_), 2.0);
}

TEST_F(LimitsTest, VersionOneWithoutLimits) {
  write("proc/self/cgroup", "7:memory:/\n3:cpu:/\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(memory_limits(root_).cgroup_limit);
  EXPECT_FALSE(cpu_quota(root_));
}

TEST_F(LimitsTest, VersionOneNestedUnderAHybridMount) {
  write("proc/self/cgroup", "4:memory:/outer/inner\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/outer/memory.limit_in_bytes", "200000000\n");
  write("sys/fs/cgroup/memory/outer/memory.usage_in_bytes", "300000000\n");
  write("sys/fs/cgroup/memory/outer/inner/memory.limit_in_bytes", "500000000\n");
  const MemoryLimits limits = memory_limits(root_);
  EXPECT_EQ(limits.cgroup_limit, 200000000u);
  EXPECT_EQ(limits.cgroup_available, 0u);
}

TEST(Limits, TheTightestWins) {
  MemoryLimits limits;
  limits.machine_total = 100;
  limits.machine_available = 80;
  EXPECT_EQ(limits.usable(), 100u);
  EXPECT_EQ(limits.available(), 80u);
  limits.cgroup_limit = 60;
  limits.cgroup_available = 50;
  limits.address_space_limit = 70;
  limits.address_space_available = 20;
  EXPECT_EQ(limits.usable(), 60u);
  EXPECT_EQ(limits.available(), 20u);
}

TEST(Limits, ThisMachine) {
  const MemoryLimits limits = memory_limits();
  EXPECT_GT(limits.machine_available, 0u);
  EXPECT_GE(limits.machine_total, limits.machine_available);
}

}  // namespace
}  // namespace assay::cpu
