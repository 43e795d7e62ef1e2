#include "harness/plan/machine.h"

#include "harness/core/error.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <fstream>

namespace assay {
namespace {

namespace fs = std::filesystem;

TEST(Machine, HasMemoryAndCpus) {
  const PlanLimits limits = machine_limits();
  EXPECT_GT(limits.memory_bytes, std::uint64_t{1} << 20);
  EXPECT_GE(limits.cpus, 1);
  EXPECT_EQ(limits.max_cases, 100000u);
}

TEST(Machine, FindsGpusOnThePciBusOrByTheirDeviceFiles) {
  const fs::path root = fs::path(testing::TempDir()) / ("pci" + std::to_string(getpid()));
  const auto device = [&](const char* name, const char* vendor, const char* kind) {
    const fs::path dir = root / "sys/bus/pci/devices" / name;
    fs::create_directories(dir);
    std::ofstream(dir / "vendor") << vendor << '\n';
    std::ofstream(dir / "class") << kind << '\n';
  };
  EXPECT_TRUE(gpus_here(root).empty());
  fs::create_directories(root / "dev");
  for (const char* file : {"nvidiactl", "nvidia-uvm", "nvidia"}) std::ofstream(root / "dev" / file) << '\n';
  EXPECT_TRUE(gpus_here(root).empty());
  for (const char* file : {"nvidia1", "nvidia0"}) std::ofstream(root / "dev" / file) << '\n';
  EXPECT_EQ(gpus_here(root), (std::vector<std::string>{"/dev/nvidia0", "/dev/nvidia1"}));
  device("0000:3b:00.0", "0x10de", "0x030200");
  device("0000:00:02.0", "0x10de", "0x030000");
  device("0000:00:03.0", "0x10de", "0x040300");  // its sound device
  device("0000:00:04.0", "0x8086", "0x030000");
  EXPECT_EQ(gpus_here(root), (std::vector<std::string>{"0000:00:02.0", "0000:3b:00.0"}));
  fs::remove_all(root);
}

TEST(Machine, AutoNeverFallsBackSilently) {
  const std::vector<std::string> gpu = {"0000:3b:00.0"};
  EXPECT_EQ(choose_device("auto", {}, true), DeviceKind::cpu);
  EXPECT_EQ(choose_device("auto", gpu, true), DeviceKind::cuda);
  EXPECT_EQ(choose_device("cpu", gpu, true), DeviceKind::cpu);
  EXPECT_EQ(choose_device("cuda", {}, true), DeviceKind::cuda);
  EXPECT_THROW(choose_device("cuda", gpu, false), UsageError);
  EXPECT_THROW(choose_device("gpu", gpu, true), UsageError);
  try {
    choose_device("auto", gpu, false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::broken);
    EXPECT_NE(std::string(error.what()).find("0000:3b:00.0"), std::string::npos);
  }
}

}  // namespace
}  // namespace assay
