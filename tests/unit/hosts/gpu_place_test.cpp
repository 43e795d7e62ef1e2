// GPUs from a fake /proc, /sys and /dev, and the CPUs near them.
#include "harness/hosts/gpu_place.h"
#include "tests/support/temporary_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace assay {
namespace {

namespace fs = std::filesystem;

class GpuPlaces : public testing::Test {
 protected:
  void write(const fs::path& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void add_gpu(const std::string& pci, int minor, int node, bool device_file = true) {
    write("proc/driver/nvidia/gpus/" + pci + "/information",
          fmt::format("Model: \t\t NVIDIA H200\nIRQ:   \t\t 7\nGPU UUID: \t GPU-{}a\nDevice Minor: \t {}\n", minor,
                      minor));
    write("sys/bus/pci/devices/" + pci + "/numa_node", fmt::format("{}\n", node));
    if (device_file) write(fmt::format("dev/nvidia{}", minor), "");
  }
  std::vector<std::string> places(const char* visible) const {
    std::vector<std::string> found;
    const auto gpus = visible_gpus(visible, root_);
    EXPECT_TRUE(gpus);
    if (gpus)
      for (const GpuPlace& gpu : *gpus) found.push_back(gpu.pci);
    return found;
  }

  test::TemporaryFolder folder_;
  const fs::path root_ = folder_.path();
};

using Texts = std::vector<std::string>;

TEST_F(GpuPlaces, AreThoseOfThisContainerByPciAddress) {
  EXPECT_FALSE(visible_gpus(nullptr, root_)) << "no driver: unknown, not none";
  add_gpu("0000:9b:00.0", 2, 1);
  add_gpu("0000:1b:00.0", 0, 0);
  add_gpu("0000:43:00.0", 1, 0, false);  // another container's
  EXPECT_EQ(places(nullptr), (Texts{"0000:1b:00.0", "0000:9b:00.0"}));
  EXPECT_EQ(places("1"), (Texts{"0000:9b:00.0"}));
  EXPECT_EQ(places("1, 0"), (Texts{"0000:9b:00.0", "0000:1b:00.0"}));
  EXPECT_EQ(places("0,7,1"), (Texts{"0000:1b:00.0"})) << "up to the first that does not exist";
  EXPECT_EQ(places(""), Texts{});
  EXPECT_EQ(places("GPU-2"), (Texts{"0000:9b:00.0"}));
  EXPECT_FALSE(visible_gpus("MIG-1234", root_));
  EXPECT_EQ(visible_gpus("1", root_).value().front().numa_node, 1);
}

}  // namespace
}  // namespace assay
