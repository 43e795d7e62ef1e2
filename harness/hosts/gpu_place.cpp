#include "harness/hosts/gpu_place.h"

#include "harness/device/cpu/near_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>

namespace assay {

namespace fs = std::filesystem;

namespace {

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

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
    if (line.starts_with("Device Minor")) minor = number(value).value_or(-1);
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

std::vector<int> cpu_list(std::string_view text) {
  std::vector<int> cpus;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t dash = part.find('-');
    const auto first = number(part.substr(0, dash));
    const auto last = dash == part.npos ? first : number(part.substr(dash + 1));
    if (!first || !last) break;
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::string cpu_list_text(std::vector<int> cpus) {
  std::ranges::sort(cpus);
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[i]);
    if (last > i) text += fmt::format("-{}", cpus[last]);
    i = last + 1;
  }
  return text;
}

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
    if (const auto index = number(word)) {
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
