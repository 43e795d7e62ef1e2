// Error counters on folders of the kernel's files, and what they grew by.
#include "harness/machine/counters.h"
#include "tests/unit/machine/fake_root.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

void add_network(FakeRoot& fake, const std::string& name, bool physical) {
  const auto folder = "sys/class/net/" + name + "/";
  if (physical) fake.file(folder + "device/vendor", "0x15b3");
  fake.file(folder + "carrier_down_count", "2").file(folder + "carrier_changes", "5");
  fake.file(folder + "statistics/rx_errors", "7").file(folder + "statistics/rx_dropped", "1000");
}

TEST(Counters, AreFoundInEveryKindOfDevice) {
  FakeRoot fake;
  add_network(fake, "eth0", true);
  add_network(fake, "veth1", false);
  fake.file("sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "3")
      .file("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "99")
      .file("sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence", "4")
      .file("sys/bus/pci/devices/0000:1b:00.0/aer_dev_fatal", "Undefined 0\nDLP 1\nTOTAL_ERR_FATAL 1")
      .file("sys/bus/pci/devices/0000:1b:00.0/aer_dev_correctable", "RxErr 5\nTOTAL_ERR_COR 6")
      .file("sys/devices/system/edac/mc/mc0/ce_count", "8")
      .file("sys/devices/system/edac/mc/mc0/ue_count", "0")
      .file("sys/fs/ext4/sda1/errors_count", "9");
  EXPECT_THAT(
      read_error_counters(fake.root(), nullptr),
      ElementsAre(ErrorCounter{"0000:1b:00.0", "aer_correctable", 6}, ErrorCounter{"0000:1b:00.0", "aer_fatal", 1},
                  ErrorCounter{"eth0", "carrier_down", 2}, ErrorCounter{"eth0", "rx_errors", 7},
                  ErrorCounter{"mc0", "ce", 8}, ErrorCounter{"mc0", "ue", 0},
                  ErrorCounter{"mlx5_0 port 1", "link_downed", 3}, ErrorCounter{"mlx5_0 port 1", "out_of_sequence", 4},
                  ErrorCounter{"sda1", "file_system_errors", 9}));
}

TEST(Counters, OldKernelsCountChangesOfTheCarrier) {
  FakeRoot fake;
  add_network(fake, "eth0", true);
  fake.remove("sys/class/net/eth0/carrier_down_count").remove("sys/class/net/eth0/statistics");
  EXPECT_THAT(read_error_counters(fake.root(), nullptr), ElementsAre(ErrorCounter{"eth0", "carrier_changes", 5}));
}

// Two threads of one core show its counter twice, four CPUs of a package that of the package.
TEST(Counters, ThrottlingIsCountedOncePerCoreAndPackage) {
  FakeRoot fake;
  for (int cpu = 0; cpu < 4; ++cpu) {
    const auto folder = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/";
    fake.file(folder + "topology/physical_package_id", "0").file(folder + "topology/core_id", std::to_string(cpu / 2));
    fake.file(folder + "thermal_throttle/core_throttle_count", std::to_string(10 + cpu / 2));
    fake.file(folder + "thermal_throttle/package_throttle_count", "7");
  }
  EXPECT_THAT(read_error_counters(fake.root(), nullptr),
              ElementsAre(ErrorCounter{"cpu", "core_throttle", 21}, ErrorCounter{"cpu", "package_throttle", 7}));
}

TEST(Counters, WhatCannotBeReadIsLeftOut) {
  FakeRoot fake;
  fake.file("sys/devices/system/edac/mc/mc0/ce_count", "many")
      .file("sys/devices/system/edac/mc/mc0/ue_count", "-1")
      .file("sys/bus/pci/devices/0000:00:01.0/aer_dev_fatal", "DLP 1");
  EXPECT_THAT(read_error_counters(fake.root(), nullptr), IsEmpty());
  EXPECT_THAT(read_error_counters(FakeRoot().root(), nullptr), IsEmpty());
}

TEST(Counters, TheReaderSeesNewValuesInTheFilesItListed) {
  FakeRoot fake;
  fake.file("sys/devices/system/edac/mc/mc0/ue_count", "1").file("sys/devices/system/edac/mc/mc0/ce_count", "5");
  const CounterReader reader(fake.root());
  EXPECT_EQ(reader.files(), 2U);
  const auto before = reader.read();
  fake.file("sys/devices/system/edac/mc/mc0/ue_count", "4").remove("sys/devices/system/edac/mc/mc0/ce_count");
  EXPECT_THAT(grown(before, reader.read()), ElementsAre(ErrorCounter{"mc0", "ue", 3}));
}

TEST(Counters, ResetAndNewCountersHaveNotGrown) {
  const std::vector<ErrorCounter> before = {{"eth0", "rx_errors", 9}, {"eth1", "rx_errors", 2}};
  const std::vector<ErrorCounter> after = {
      {"eth0", "rx_errors", 1}, {"eth1", "rx_errors", 5}, {"eth2", "rx_errors", 8}};
  EXPECT_THAT(grown(before, after), ElementsAre(ErrorCounter{"eth1", "rx_errors", 3}));
  EXPECT_THAT(grown(after, after), IsEmpty());
}

TEST(Counters, OnlyUncorrectedErrorsCountAgainstACase) {
  for (const char* name : {"ue", "aer_fatal", "aer_nonfatal", "ecc_uncorrected", "link_downed"})
    EXPECT_TRUE(is_uncorrected(name)) << name;
  for (const char* name : {"ce", "aer_correctable", "carrier_down", "rx_errors", "pcie_replays", "core_throttle"})
    EXPECT_FALSE(is_uncorrected(name)) << name;
}

// Counters that the driver does not report are absent, not 0.
TEST(Counters, OfAGpu) {
  GpuErrorCounts counts;
  counts.ecc_uncorrected = 2;
  counts.pcie_replays = 0;
  EXPECT_THAT(error_counters(counts, "0000:1b:00.0"), ElementsAre(ErrorCounter{"0000:1b:00.0", "ecc_uncorrected", 2},
                                                                  ErrorCounter{"0000:1b:00.0", "pcie_replays", 0}));
}

}  // namespace
}  // namespace assay
