// GPUs on the PCI bus: from the kernel's and the NVIDIA driver's files, plus what NVML adds.
#include "harness/machine/machine.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace assay {
namespace {

constexpr std::string_view nvidia = "0x10de";
constexpr std::array rates = {2.5, 5.0, 8.0, 16.0, 32.0, 64.0};  // GT/s of PCI Express generations 1 to 6

std::string without_prefix(const std::string& text) { return text.starts_with("0x") ? text.substr(2) : text; }

// GT/s of a PCI Express generation.
std::optional<double> transfer_rate(std::optional<std::int64_t> generation) {
  const bool known = generation && *generation >= 1 && *generation <= std::ssize(rates);
  return known ? std::optional(rates[static_cast<std::size_t>(*generation - 1)]) : std::nullopt;
}

void add_nvml(const NvmlDevice& device, GpuPart& gpu) {
  if (gpu.pci.empty()) gpu.pci = device.pci();
  if (gpu.id.empty()) gpu.id = device.pci_id();
  if (gpu.name.empty()) gpu.name = device.name();
  if (gpu.uuid.empty()) gpu.uuid = device.uuid();
  gpu.driver = "nvidia";
  gpu.managed = true;
  gpu.lost = device.lost();
  if (gpu.vbios.empty()) gpu.vbios = device.vbios();
  gpu.nvlinks_active = device.nvlinks_active();
  gpu.temperature = device.temperature();
  add_link(device, gpu);
  gpu.mig = device.mig();
  gpu.slices = device.slices();
  gpu.ecc = device.ecc();
  gpu.mps = device.mps();
  gpu.persistence = device.persistence();
  gpu.errors = device.errors();
  gpu.power_limit = device.power_limit();
  gpu.default_power_limit = device.default_power_limit();
  gpu.applications_clock = device.applications_clock();
  gpu.default_applications_clock = device.default_applications_clock();
  gpu.max_clock = device.max_clock();
  gpu.throttle_reasons = device.throttle_reasons();
  gpu.clients = device.clients();
}

// First and last device ids of data-centre GPUs (the PCI ID Repository, and "Supported NVIDIA GPU Products" in the
// README of NVIDIA's driver). Workstation cards with the same chips have ids of their own.
constexpr std::pair<int, int> data_centre_ids[] = {
    {0x1db0, 0x1db8}, {0x1df5, 0x1df6},  // V100
    {0x1eb8, 0x1eb9},                    // T4
    {0x20b0, 0x20bf}, {0x20f0, 0x20ff},  // A100, A800, A30
    {0x2235, 0x2238}, {0x25b6, 0x25b7},  // A40, A10; A2, A16
    {0x2300, 0x237f},                    // H100, H200, H800, H20, GH200
    {0x26b5, 0x26b6}, {0x26b8, 0x26ba},  // L40, L40G, L40S, L20
    {0x27b6, 0x27b8},                    // L2, L4
    {0x2900, 0x29ff}, {0x3180, 0x31ff},  // B100, B200, GB200; B300, GB300
    {0x2bb5, 0x2bb5},                    // RTX PRO 6000 Blackwell Server Edition
};

bool newer_or_equal(const std::string& kernel, int major, int minor) {
  const auto dot = kernel.find('.');
  const auto first = to_integer(kernel).value_or(0);
  const auto second = dot == std::string::npos ? 0 : to_integer(std::string_view(kernel).substr(dot + 1)).value_or(0);
  return first > major || (first == major && second >= minor);
}

}  // namespace

bool open_modules(const Root& root) {
  return root.text("proc/driver/nvidia/version").value_or("").find("Open Kernel Module") != std::string::npos;
}

std::string gpudirect_rdma(const Root& root, const Machine& machine) {
  if (machine.gpus.empty() || machine.system.nvidia_driver.empty()) return {};
  if (root.exists("sys/module/nvidia_peermem") || root.exists("sys/module/nv_peer_mem")) return "nvidia_peermem";
  // NCCL takes dma-buf with the open modules and Linux 5.12 or later (its release notes, 2.12).
  return open_modules(root) && newer_or_equal(machine.system.kernel, 5, 12) ? "dma-buf" : "none";
}

bool is_data_centre_gpu(std::string_view id) {
  if (!id.starts_with("10de:")) return false;
  int device = 0;
  id.remove_prefix(5);
  std::from_chars(id.data(), id.data() + id.size(), device, 16);
  return std::ranges::any_of(data_centre_ids,
                             [&](const auto& range) { return device >= range.first && device <= range.second; });
}

std::optional<double> gigatransfers(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text->c_str(), &end);
  return end != text->c_str() && value > 0 ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> lanes(std::optional<std::int64_t> width) {
  return width && *width >= 1 && *width <= 32 ? width : std::nullopt;
}

void add_link(const NvmlDevice& device, GpuPart& gpu) {
  if (!gpu.link_width) gpu.link_width = device.link_width();
  if (!gpu.max_link_width) gpu.max_link_width = device.max_link_width();
  if (!gpu.link_speed) gpu.link_speed = transfer_rate(device.link_generation());
  if (!gpu.max_link_speed) gpu.max_link_speed = transfer_rate(device.max_link_generation());
}

void add_nvml(const Nvml& nvml, std::vector<GpuPart>& gpus) {
  std::vector<std::string> known;
  for (GpuPart& gpu : gpus)
    if (const auto device = nvml.find(gpu.uuid, gpu.pci)) {
      add_nvml(*device, gpu);
      known.push_back(device->uuid());
    }
  for (const NvmlDevice& device : nvml.devices()) {
    if (std::ranges::find(known, device.uuid()) != known.end()) continue;
    gpus.emplace_back();
    add_nvml(device, gpus.back());
  }
}

std::optional<int> pcie_generation(std::optional<double> rate) {
  for (std::size_t i = 0; rate && i < rates.size(); ++i)
    if (std::abs(*rate - rates[i]) < 0.1) return static_cast<int>(i) + 1;
  return std::nullopt;
}

std::vector<GpuPart> probe_gpus(const Root& root) {
  std::vector<GpuPart> gpus;
  for (const auto& pci : root.list("sys/bus/pci/devices")) {
    const auto folder = "sys/bus/pci/devices/" + pci + "/";
    const auto kind = root.text(folder + "class").value_or("");
    // Only display controllers: VGA 0x0300, 3D 0x0302; audio functions and NVSwitches have the same vendor.
    if (root.text(folder + "vendor") != nvidia || !(kind.starts_with("0x0300") || kind.starts_with("0x0302"))) continue;
    GpuPart gpu;
    gpu.pci = pci;
    gpu.id = without_prefix(std::string(nvidia)) + ":" + without_prefix(root.text(folder + "device").value_or(""));
    gpu.driver = root.link_name(folder + "driver").value_or("");
    gpu.link_width = lanes(root.integer(folder + "current_link_width"));
    gpu.max_link_width = lanes(root.integer(folder + "max_link_width"));
    gpu.link_speed = gigatransfers(root.text(folder + "current_link_speed"));
    gpu.max_link_speed = gigatransfers(root.text(folder + "max_link_speed"));
    // The folder is a link into the tree of bridges, so its parent is the slot.
    gpu.slot_link_speed = gigatransfers(root.text(folder + "../max_link_speed"));
    if (const auto node = root.integer(folder + "numa_node"); node && *node >= 0)
      gpu.numa_node = static_cast<int>(*node);
    if (const auto information = root.text("proc/driver/nvidia/gpus/" + pci + "/information")) {
      gpu.name = field(*information, "Model").value_or("");
      gpu.uuid = field(*information, "GPU UUID").value_or("");
      gpu.vbios = field(*information, "Video BIOS").value_or("");
      if (gpu.vbios.starts_with("?")) gpu.vbios.clear();  // before the GPU was first used
    }
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

}  // namespace assay
