// Findings about a GPU's state, and what NVML adds to the machine; with the stand-in for libnvidia-ml.
#include "harness/machine/spoilers.h"
#include "tests/unit/machine/nvml_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace assay {
namespace {

Machine machine_with(GpuPart gpu) {
  Machine machine;
  machine.cpu.cpufreq = true;
  machine.cpu.turbo = false;
  gpu.pci = "0000:1b:00.0";
  gpu.driver = "nvidia";
  machine.gpus.push_back(std::move(gpu));
  return machine;
}

std::vector<std::string> gpu_findings(const Machine& machine) {
  std::vector<std::string> ids;
  for (const Finding& finding : find_spoilers(machine, {}))
    if (finding.id.starts_with("gpu-")) {
      ids.push_back(finding.id);
      EXPECT_THAT(finding.device + finding.seen, testing::HasSubstr("0000:1b:00.0"));
      EXPECT_FALSE(finding.fix.empty());
    }
  return ids;
}

TEST(GpuFindings, AHealthyGpuHasNone) {
  GpuPart gpu;
  gpu.mig = gpu.mps = false;
  gpu.ecc = gpu.persistence = true;
  gpu.errors.ecc_uncorrected = gpu.errors.remap_pending = 0;
  gpu.power_limit = gpu.default_power_limit = 700;
  gpu.applications_clock = gpu.default_applications_clock = 1.98e9;
  gpu.throttle_reasons = static_cast<std::uint64_t>(ThrottleReason::idle);
  EXPECT_THAT(gpu_findings(machine_with(gpu)), testing::IsEmpty());
}

TEST(GpuFindings, UnknownValuesGiveNone) { EXPECT_THAT(gpu_findings(machine_with({})), testing::IsEmpty()); }

TEST(GpuFindings, EachSpoilerIsFound) {
  GpuPart gpu;
  gpu.mig = gpu.mps = true;
  gpu.ecc = gpu.persistence = false;
  gpu.errors.remap_pending = 1;
  gpu.power_limit = 400;
  gpu.default_power_limit = 700;
  gpu.applications_clock = 1.2e9;
  gpu.default_applications_clock = 1.98e9;
  gpu.throttle_reasons = static_cast<std::uint64_t>(ThrottleReason::hardware_thermal);
  gpu.clients = {{1, std::uint64_t{3} << 30}};
  EXPECT_THAT(gpu_findings(machine_with(gpu)),
              testing::ElementsAre("gpu-mig", "gpu-mps", "gpu-ecc", "gpu-memory-errors", "gpu-power-limit",
                                   "gpu-clocks", "gpu-throttled", "gpu-other-load", "gpu-persistence"));
}

TEST(GpuFindings, ThrottleReasonsAreDescribed) {
  EXPECT_EQ(throttle_text(0), "");
  EXPECT_EQ(throttle_text(1), "");
  EXPECT_EQ(throttle_text(0x4 | 0x20), "power cap, thermal (software)");
}

TEST(AddNvml, FillsInMissingValuesAndAppendsMissingGpus) {
  const NvmlScript script(
      "mig 0\necc 1\npower_limit 700000\nlink_generation 5\nlink_width 16\nclient 77 1048576\nnvlinks 17\n");
  std::string why_not;
  const auto nvml = Nvml::load(why_not);
  if (!nvml || nvml->driver_version() != "999.1") GTEST_SKIP() << "no stand-in for NVML here: " << why_not;
  std::vector<GpuPart> gpus(1);
  gpus[0].pci = "0000:1b:00.0";
  add_nvml(*nvml, gpus);
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(gpus[0].name, "Stand-in GPU");
  EXPECT_EQ(gpus[0].vbios, "96.00.74.00.01");
  EXPECT_EQ(gpus[0].nvlinks_active, 17);
  EXPECT_EQ(gpus[0].mig, false);
  EXPECT_EQ(gpus[0].ecc, true);
  EXPECT_EQ(gpus[0].power_limit, 700);
  EXPECT_FALSE(gpus[0].default_power_limit);
  EXPECT_EQ(pcie_generation(gpus[0].link_speed), 5);
  EXPECT_EQ(gpus[0].link_width, 16);
  ASSERT_EQ(gpus[0].clients.size(), 1u);
  EXPECT_EQ(gpus[0].clients[0].pid, 77);

  std::vector<GpuPart> none;
  add_nvml(*nvml, none);
  ASSERT_EQ(none.size(), 1u);
  EXPECT_EQ(none[0].uuid, "GPU-stand-in");
  EXPECT_EQ(none[0].pci, "0000:1b:00.0");
  EXPECT_EQ(none[0].id, "10de:2335");
  EXPECT_TRUE(none[0].slices.empty());
}

TEST(GpuFindings, TheDriverSaysWhichSlicesAGpuHas) {
  const NvmlScript script("mig 1\nmax_slices 7\nslices 2\n");
  std::string why_not;
  const auto nvml = Nvml::load(why_not);
  if (!nvml || nvml->driver_version() != "999.1") GTEST_SKIP() << "no stand-in for NVML here: " << why_not;
  std::vector<GpuPart> gpus;
  add_nvml(*nvml, gpus);
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(gpus[0].slices, (std::vector<std::string>{"MIG-stand-in", "MIG-stand-in"}));
  EXPECT_EQ(nvml->find("MIG-stand-in", "")->whole().uuid(), "GPU-stand-in");
  EXPECT_EQ(nvml->find("GPU-stand-in", "")->whole().uuid(), "GPU-stand-in");
}

}  // namespace
}  // namespace assay
