// Where the GPUs of this host stand, from what the driver shows below /proc and /sys: no library is loaded.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct GpuPlace {
  std::string pci;     // "0000:1b:00.0"
  std::string uuid;    // "GPU-..."; empty where the driver does not show it
  int numa_node = -1;  // -1: unknown, or the host has one node
};

// The GPUs that a process here sees, in the order that CUDA counts them under CUDA_DEVICE_ORDER=PCI_BUS_ID: those of
// the driver whose device file is here, then as `visible` (CUDA_VISIBLE_DEVICES; null: all) picks them. Nothing where
// that cannot be known: no driver, an unknown UUID, a slice of a GPU (MIG). `root` is where /proc, /sys and /dev are.
std::optional<std::vector<GpuPlace>> visible_gpus(const char* visible, const std::filesystem::path& root = "/");

// The same with this process's environment; also nothing where CUDA counts in another order, or the CUDA module comes
// from elsewhere (ASSAY_MODULE_PATH) and may know other devices than the driver's.
std::optional<std::vector<GpuPlace>> gpus_of_environment();

// "0-3,8" as 0, 1, 2, 3, 8; stops at what is no number.
std::vector<int> cpu_list(std::string_view text);
// The other way; each CPU once, ascending.
std::string cpu_list_text(std::vector<int> cpus);

}  // namespace assay
