// The path between GPU and NIC: bridges, IOMMU, GPUDirect RDMA, NUMA nodes, and what NCCL is given to find it.
#include "harness/audit/areas.h"
#include "harness/core/text.h"
#include "harness/machine/nccl_ports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

namespace assay::audit {

namespace {

// The control bits of a bridge's Access Control Services that send peer-to-peer requests upwards (PCI Express base
// specification, "ACS Extended Capability"): request and completion redirect, egress control. Absent: not readable.
std::optional<bool> redirects(const std::string& config) {
  constexpr std::size_t extended = 0x100;
  constexpr unsigned acs = 0x0d, redirect_bits = 0x4 | 0x8 | 0x20;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned>(static_cast<unsigned char>(config[at])); };
  if (config.size() < extended + 4) return std::nullopt;  // only root sees more than 64 bytes
  std::size_t at = extended;
  for (int i = 0; i < 64 && at >= extended && at + 8 <= config.size(); ++i) {
    const unsigned header = byte(at) | byte(at + 1) << 8 | byte(at + 2) << 16 | byte(at + 3) << 24;
    if ((header & 0xffff) == acs) return ((byte(at + 6) | byte(at + 7) << 8) & redirect_bits) != 0;
    at = header >> 20;
  }
  return false;
}

void audit_acs(const Subject& subject, Report& report) {
  if (!subject.machine.system.hypervisor.empty() || subject.machine.gpus.empty()) return;
  std::vector<std::string> redirecting;
  int bridges = 0;
  for (const std::string& pci : subject.root.list("sys/bus/pci/devices")) {
    const auto folder = "sys/bus/pci/devices/" + pci + "/";
    if (!subject.root.text(folder + "class").value_or("").starts_with("0x0604")) continue;
    auto config = subject.root.text(folder + "config");
    if (!config) continue;
    config->resize(4096);  // without the zeros at its end, as text() trims
    const auto on = redirects(*config);
    if (on) ++bridges;
    if (on.value_or(false)) redirecting.push_back(pci);
  }
  if (redirecting.empty()) return;
  constexpr std::size_t max_named = 8;
  const auto total = redirecting.size();
  if (total > max_named) redirecting.resize(max_named);
  report.add("acs-redirect", "",
             fmt::format("{} of {} bridges: {}{}", total, bridges, fmt::join(redirecting, ", "),
                         total > max_named ? ", ..." : ""));
}

void audit_iommu(const Subject& subject, Report& report) {
  std::set<std::string> types;
  for (const GpuPart& gpu : subject.machine.gpus) {
    const auto type = subject.root.text("sys/bus/pci/devices/" + gpu.pci + "/iommu_group/type");
    if (!type) continue;
    types.insert(*type);
    if (type->starts_with("DMA") && subject.machine.system.hypervisor.empty())
      report.add("iommu-translates", gpu.pci, "IOMMU group of type " + *type);
  }
  report.fact("iommu", joined(types));
}

void audit_gpudirect(const Subject& subject, Report& report) {
  const auto& [root, machine, now, boot] = subject;
  const std::string way = gpudirect_rdma(root, machine);
  if (way.empty()) return;
  report.fact("gpudirect rdma", way);
  report.fact("driver modules", !root.exists("proc/driver/nvidia/version") ? ""
                                : open_modules(root)                       ? "open"
                                                                           : "closed");
  if (!root.list("sys/class/infiniband").empty() && way == "none")
    report.add("no-gpudirect-rdma", "", "neither nvidia_peermem nor dma-buf");
}

// GPUs without a NIC on their NUMA node, if others have one.
void audit_distance(const Subject& subject, Report& report) {
  std::set<std::int64_t> nodes;
  for (const std::string& name : subject.root.list("sys/class/infiniband"))
    if (const auto node = subject.root.integer("sys/class/infiniband/" + name + "/device/numa_node");
        node && *node >= 0)
      nodes.insert(*node);
  const auto near = [&](const GpuPart& gpu) { return gpu.numa_node && nodes.contains(*gpu.numa_node); };
  if (std::ranges::none_of(subject.machine.gpus, near)) return;
  for (const GpuPart& gpu : subject.machine.gpus)
    if (gpu.numa_node && !near(gpu))
      report.add("gpu-far-from-nic", gpu.pci,
                 fmt::format("NUMA node {}, NICs on {}", *gpu.numa_node, fmt::join(nodes, ", ")));
}

void audit_nccl_files(const Subject& subject, Report& report) {
  const auto& root = subject.root;
  for (const auto& [name, value] : nccl_conf(root)) report.fact("nccl.conf " + name, value);
  auto [topology, from] = nccl_setting(root, "NCCL_TOPO_FILE");
  const auto inside = topology.substr(std::min(topology.find_first_not_of('/'), topology.size()));
  if (!topology.empty() && !root.exists(inside))
    report.add("topology-file-missing", topology, "NCCL_TOPO_FILE in " + from);
  // NCCL reads this one by itself.
  if (topology.empty() && root.exists("var/run/nvidia-topologyd/virtualTopology.xml"))
    topology = "/var/run/nvidia-topologyd/virtualTopology.xml";
  report.fact("nccl topology file", topology);

  std::set<std::string> plugins;
  for (const std::string& folder : library_folders(root))
    for (const std::string& name : root.list(folder))
      if (name.starts_with("libnccl-net") || name.starts_with("libnccl-tuner"))
        plugins.insert(name.substr(0, name.find(".so")));
  report.fact("nccl plugins", joined(plugins));
  const auto nics = root.list("sys/class/infiniband");
  const bool efa = std::ranges::any_of(nics, [&](const std::string& name) {
    return root.link_name("sys/class/infiniband/" + name + "/device/driver").value_or("") == "efa";
  });
  if (efa && plugins.empty() && !subject.machine.gpus.empty())
    report.add("nccl-plugin-missing", "", fmt::format("{} NICs of EFA, no libnccl-net*.so", nics.size()));
}

// Daemons without which NVLink across GPUs or hosts does not start. A container does not see them.
void audit_daemons(const Subject& subject, Report& report) {
  const auto& [root, machine, now, boot] = subject;
  if (may_be_container(subject)) return;
  if (has_nvswitch(root) && !machine.system.nvidia_driver.empty() && !process_runs(root, "nv-fabricmanager"))
    report.add("fabric-manager", "", "NVSwitches, but no process nv-fabricmanager");
  if (root.exists("etc/nvidia-imex/nodes_config.cfg") && !process_runs(root, "nvidia-imex"))
    report.add("imex", "", "/etc/nvidia-imex/nodes_config.cfg, but no process nvidia-imex");
}

}  // namespace

void audit_path(const Subject& subject, Report& report) {
  audit_acs(subject, report);
  audit_iommu(subject, report);
  audit_gpudirect(subject, report);
  audit_distance(subject, report);
  audit_nccl_files(subject, report);
  audit_daemons(subject, report);
}

}  // namespace assay::audit
