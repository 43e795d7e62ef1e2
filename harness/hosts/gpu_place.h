// PCI addresses and NUMA nodes of this host's GPUs, from the driver's files below /proc and /sys, without its
// libraries.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct GpuPlace {
  std::string pci;                    // "0000:1b:00.0"
  std::string uuid;                   // "GPU-..."; empty if the driver does not show it
  std::optional<int> numa_node = {};  // absent: unknown, or the host has one node

  static void members(auto& self, auto& io) {
    io("pci", self.pci), io("uuid", self.uuid), io("numa_node", self.numa_node);
  }
};

// The GPUs that a process here sees, in CUDA's order under CUDA_DEVICE_ORDER=PCI_BUS_ID: those with a device file,
// chosen by `visible` (CUDA_VISIBLE_DEVICES; null: all). Nothing if that is unknown: no driver, an unknown UUID, a
// slice of a GPU (MIG). `root` holds /proc, /sys and /dev.
std::optional<std::vector<GpuPlace>> visible_gpus(const char* visible, const std::filesystem::path& root = "/");

// The same with this process's environment; also nothing if CUDA uses another order, or the CUDA module comes from
// ASSAY_MODULE_PATH and may have other devices than the driver.
std::optional<std::vector<GpuPlace>> gpus_of_environment();

}  // namespace assay
