#include "harness/hosts/gpu_place.h"

#include "harness/core/whole_number.h"
#include "harness/device/cpu/near_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace assay {

namespace fs = std::filesystem;

namespace {

// From the driver's page on one GPU; nothing if its device file is missing (another container's GPU).
std::optional<GpuPlace> read_gpu(const fs::path& page, const std::string& pci, const fs::path& root) {
  GpuPlace gpu;
  gpu.pci = pci;
  std::ifstream file(page);
  int minor = -1;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const std::size_t start = line.find_first_not_of(" \t", colon + 1);
    const std::string value = start == line.npos ? "" : line.substr(start);
    if (line.starts_with("GPU UUID")) gpu.uuid = value;
    if (line.starts_with("Device Minor")) minor = whole_number<int>(value).value_or(-1);
  }
  std::error_code none;
  if (minor >= 0 && !fs::exists(root / fmt::format("dev/nvidia{}", minor), none)) return std::nullopt;
  gpu.numa_node = cpu::node_of_pci(pci, root);
  return gpu;
}

std::vector<GpuPlace> all_gpus(const fs::path& root) {
  std::vector<GpuPlace> gpus;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "proc/driver/nvidia/gpus", none))
    if (auto gpu = read_gpu(entry.path() / "information", entry.path().filename().string(), root))
      gpus.push_back(std::move(*gpu));
  std::ranges::sort(gpus, {}, &GpuPlace::pci);
  return gpus;
}

}  // namespace

std::optional<std::vector<GpuPlace>> gpus_of_environment() {
  const char* order = std::getenv("CUDA_DEVICE_ORDER");
  if ((order && std::string_view(order) != "PCI_BUS_ID") || std::getenv("ASSAY_MODULE_PATH")) return std::nullopt;
  return visible_gpus(std::getenv("CUDA_VISIBLE_DEVICES"));
}

std::optional<std::vector<GpuPlace>> visible_gpus(const char* visible, const fs::path& root) {
  const std::vector<GpuPlace> all = all_gpus(root);
  if (all.empty()) return std::nullopt;
  if (!visible) return all;
  std::vector<GpuPlace> picked;
  std::string_view rest = visible;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::string_view word = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    if (const auto index = whole_number<int>(word)) {
      // CUDA ignores the list from the first invalid number on.
      if (*index < 0 || static_cast<std::size_t>(*index) >= all.size()) return picked;
      picked.push_back(all[static_cast<std::size_t>(*index)]);
      continue;
    }
    const auto found = std::ranges::find_if(
        all, [&](const GpuPlace& gpu) { return word.starts_with("GPU-") && gpu.uuid.starts_with(word); });
    if (found == all.end()) return std::nullopt;
    picked.push_back(*found);
  }
  return picked;
}

}  // namespace assay
