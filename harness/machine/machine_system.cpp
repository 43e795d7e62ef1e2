// Memory, operating system, container or virtual machine, cloud.
#include "harness/core/whole_number.h"
#include "harness/device/cpu/cpu_list.h"
#include "harness/device/cpu/cpuid.h"
#include "harness/device/cpu/limits.h"
#include "harness/machine/cpu_ticks.h"
#include "harness/machine/libraries.h"
#include "harness/machine/machine.h"

#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace assay {
namespace {

// Online memory blocks: exactly what the firmware gave, whereas MemTotal lacks what the kernel reserves.
std::optional<std::uint64_t> installed_memory(const Root& root) {
  const auto block = root.text("sys/devices/system/memory/block_size_bytes");
  const auto bytes = block ? whole_number<std::uint64_t>(*block, 16) : std::nullopt;
  if (!bytes) return std::nullopt;
  std::uint64_t blocks = 0;
  for (const auto& name : root.list("sys/devices/system/memory"))
    if (name.starts_with("memory") && root.text("sys/devices/system/memory/" + name + "/state") == "online") ++blocks;
  return blocks > 0 ? std::optional(blocks * *bytes) : std::nullopt;
}

// The word in brackets of "always [madvise] never".
std::string chosen(const std::string& text) {
  const auto open = text.find('['), close = text.find(']');
  return open == std::string::npos || close == std::string::npos ? "" : text.substr(open + 1, close - open - 1);
}

std::optional<std::int64_t> soft_limit(const Root& root, std::string_view name) {
  for (const auto& line : lines(root.text("proc/self/limits").value_or("")))
    if (line.starts_with(name)) {
      const auto columns = words(std::string_view(line).substr(name.size()));
      return columns.empty() ? std::nullopt : to_integer(columns[0]);  // "unlimited" gives nothing
    }
  return std::nullopt;
}

MemoryPart probe_memory(const Root& root) {
  MemoryPart memory;
  const auto info = root.text("proc/meminfo").value_or("");
  memory.installed = installed_memory(root);
  memory.total = kilobytes_field(info, "MemTotal");
  memory.available = kilobytes_field(info, "MemAvailable");
  const auto limits = cpu::memory_limits(root.path());
  if (limits.cgroup_limit && (!memory.total || *limits.cgroup_limit < *memory.total))
    memory.limit = limits.cgroup_limit;
  if (const auto bytes = soft_limit(root, "Max address space"); bytes && *bytes > 0)
    memory.address_space_limit = static_cast<std::uint64_t>(*bytes);
  memory.swap_total = kilobytes_field(info, "SwapTotal");
  if (const auto left = kilobytes_field(info, "SwapFree"); left && memory.swap_total && *memory.swap_total >= *left)
    memory.swap_used = *memory.swap_total - *left;
  memory.transparent_huge_pages = chosen(root.text("sys/kernel/mm/transparent_hugepage/enabled").value_or(""));
  memory.huge_pages_bytes = kilobytes_field(info, "Hugetlb");
  if (const auto on = root.integer("proc/sys/kernel/numa_balancing")) memory.numa_balancing = *on != 0;
  if (struct statvfs shm{}; root.exists("dev/shm") && ::statvfs((root.path() / "dev/shm").c_str(), &shm) == 0)
    memory.shm_bytes = static_cast<std::uint64_t>(shm.f_blocks) * shm.f_frsize;
  return memory;
}

std::vector<NumaPart> probe_numa(const Root& root) {
  std::vector<NumaPart> nodes;
  for (const auto& name : root.list("sys/devices/system/node")) {
    const auto number = name.starts_with("node") ? to_integer(std::string_view(name).substr(4)) : std::nullopt;
    if (!number) continue;
    const auto folder = "sys/devices/system/node/" + name + "/";
    NumaPart node;
    node.number = static_cast<int>(*number);
    node.cpus = cpu_list(root.text(folder + "cpulist").value_or(""));
    // "Node 0 MemTotal:  123 kB"
    node.bytes =
        kilobytes_field(root.text(folder + "meminfo").value_or(""), "Node " + std::to_string(*number) + " MemTotal");
    nodes.push_back(std::move(node));
  }
  return nodes;
}

std::string container_of(const Root& root) {
  if (root.exists("var/run/secrets/kubernetes.io") || root.exists("run/secrets/kubernetes.io")) return "kubernetes";
  if (const auto name = root.text("run/systemd/container"); name && !name->empty()) return *name;
  // Variables are separated by zeros; only root can read them.
  const auto environment = root.text("proc/1/environ").value_or("");
  for (std::size_t from = 0; from < environment.size();) {
    const auto end = std::min(environment.find('\0', from), environment.size());
    const auto variable = std::string_view(environment).substr(from, end - from);
    if (variable.starts_with("container=") && variable.size() > 10) return std::string(variable.substr(10));
    from = end + 1;
  }
  if (root.exists("run/.containerenv")) return "podman";
  if (root.exists(".dockerenv")) return "docker";
  const auto groups = root.text("proc/1/cgroup").value_or("");
  for (const auto* kind : {"kubepods", "docker", "libpod", "lxc"})
    if (groups.find(kind) != std::string::npos) return std::string_view(kind) == "kubepods" ? "kubernetes" : kind;
  return "";
}

struct Cloud {
  std::string_view vendor;  // prefix of sys_vendor
  std::string_view provider;
  bool product_is_type;  // product_name is the instance type
};
constexpr Cloud clouds[] = {{"Amazon EC2", "aws", true},         {"Google", "gcp", false},
                            {"Hetzner", "hetzner", false},       {"DigitalOcean", "digitalocean", false},
                            {"Alibaba Cloud", "alibaba", false}, {"Scaleway", "scaleway", true}};
// Azure's firmware is that of any Hyper-V; only this asset tag identifies it.
constexpr std::string_view azure_tag = "7783-7084-3265-9085-8269-3286-77";

void name_cloud(SystemPart& system) {
  const auto vendor = system.dmi["sys_vendor"], product = system.dmi["product_name"];
  const auto chassis = system.dmi["chassis_asset_tag"];
  for (const auto& cloud : clouds)
    if (vendor.starts_with(cloud.vendor)) {
      system.provider = cloud.provider;
      if (cloud.product_is_type) system.instance_type = product;
    }
  // AWS's older Xen machines name AWS only in the BIOS, and do not report the type.
  if (system.provider.empty() && (system.dmi["bios_version"].find("amazon") != std::string::npos ||
                                  system.dmi["product_version"].find("amazon") != std::string::npos))
    system.provider = "aws";
  if (chassis == azure_tag) system.provider = "azure";
  if (chassis == "OracleCloud.com") system.provider = "oracle";
  if (system.provider.empty() && product.find("OpenStack") != std::string::npos) system.provider = "openstack";
}

std::string hypervisor_of(const Root& root, SystemPart& system, const CpuPart& cpu) {
  if (root.real() && !cpu::processor().hypervisor.empty()) return cpu::processor().hypervisor;
  const auto type = root.text("sys/hypervisor/type").value_or("");
  if (type == "xen") return "Xen";
  const auto vendor = system.dmi["sys_vendor"], product = system.dmi["product_name"];
  const bool guest = cpu.has("hypervisor");
  if (vendor.starts_with("QEMU") || product.find("KVM") != std::string::npos) return "KVM";
  if (vendor.starts_with("VMware")) return "VMware";
  if (vendor.starts_with("innotek")) return "VirtualBox";
  if (vendor.starts_with("Microsoft Corporation") && product == "Virtual Machine") return "Hyper-V";
  if (vendor.starts_with("Xen")) return "Xen";
  if (guest && (vendor.starts_with("Amazon EC2") || vendor.starts_with("Google"))) return "KVM";
  return guest ? "unknown" : "";
}

// First word with a dot between digits: "550.54.15" of the kernel module's long line.
std::string nvidia_driver(const Root& root) {
  for (const auto& line : lines(root.text("proc/driver/nvidia/version").value_or(""))) {
    if (!line.starts_with("NVRM version")) continue;
    for (const auto& word : words(line)) {
      const auto version = word.find_first_not_of("0123456789.") == std::string::npos;
      if (version && word.find('.') != std::string::npos) return word;
    }
  }
  return "";
}

std::string os_name(const Root& root) {
  for (const auto* file : {"etc/os-release", "usr/lib/os-release"})
    for (const auto& line : lines(root.text(file).value_or("")))
      if (line.starts_with("PRETTY_NAME=")) {
        auto name = line.substr(12);
        std::erase(name, '"');
        return name;
      }
  return "";
}

}  // namespace

SystemPart probe_system(const Root& root, const CpuPart& cpu) {
  SystemPart system;
  system.hostname = root.text("proc/sys/kernel/hostname").value_or("");
  system.kernel = root.text("proc/sys/kernel/osrelease").value_or("");
  system.architecture = root.text("proc/sys/kernel/arch").value_or("");
  if (utsname names{}; root.real() && uname(&names) == 0) system.architecture = names.machine;
  system.os = os_name(root);
  for (const auto* name : {"sys_vendor", "product_name", "product_version", "board_vendor", "board_name",
                           "board_asset_tag", "chassis_asset_tag", "bios_vendor", "bios_version"})
    if (const auto value = root.text(std::string("sys/class/dmi/id/") + name); value && !value->empty())
      system.dmi[name] = *value;
  auto readable = system;  // operator[] of the map below may add empty entries
  name_cloud(readable);
  system.provider = readable.provider;
  system.instance_type = readable.instance_type;
  system.hypervisor = hypervisor_of(root, readable, cpu);
  system.container = container_of(root);
  system.nvidia_driver = nvidia_driver(root);
  system.clocksource = root.text("sys/devices/system/clocksource/clocksource0/current_clocksource").value_or("");
  system.open_files = soft_limit(root, "Max open files");
  if (const auto load = root.text("proc/loadavg"); load && !load->empty()) system.load = std::atof(load->c_str());
  if (const auto ticks = cpu_ticks(root, {}); ticks && ticks->total > 0)
    system.steal_since_boot = static_cast<double>(ticks->steal) / static_cast<double>(ticks->total);
  return system;
}

std::string arm_product(const std::string& core, const SystemPart& system) {
  struct Product {
    std::string_view core, provider, name;
  };
  static constexpr std::array<Product, 9> products = {{{"Arm Cortex-A72", "aws", "AWS Graviton"},
                                                       {"Arm Neoverse N1", "aws", "AWS Graviton2"},
                                                       {"Arm Neoverse V1", "aws", "AWS Graviton3"},
                                                       {"Arm Neoverse V2", "aws", "AWS Graviton4"},
                                                       {"Arm Neoverse V2", "gcp", "Google Axion"},
                                                       {"Arm Neoverse N3", "gcp", "Google Axion"},
                                                       {"Arm Neoverse N1", "gcp", "Ampere Altra"},
                                                       {"Arm Neoverse N1", "azure", "Ampere Altra"},
                                                       {"Arm Neoverse N1", "oracle", "Ampere Altra"}}};
  for (const Product& one : products)
    if (one.core == core && one.provider == system.provider) return std::string(one.name);
  std::string firmware;
  for (const auto& [name, value] : system.dmi) firmware += value + " ";
  const auto says = [&](std::string_view word) { return firmware.find(word) != firmware.npos; };
  if (core == "Arm Neoverse V2" && (says("NVIDIA") || says("Grace"))) return "NVIDIA Grace";
  if (core == "Arm Neoverse N1" && (says("Ampere") || says("Altra"))) return "Ampere Altra";
  return {};
}

Machine probe_machine(const Root& root) {
  Machine machine;
  machine.cpu = probe_cpu(root);
  machine.numa = probe_numa(root);
  machine.memory = probe_memory(root);
  machine.gpus = probe_gpus(root);
  machine.system = probe_system(root, machine.cpu);
  if (machine.system.hypervisor.empty()) machine.channels = memory_channels(root);
  machine.network = hardware_ports(root);
  machine.disks = disk_parts(root);
  if (const auto product = arm_product(machine.cpu.name, machine.system); !product.empty())
    machine.cpu.name += " (" + product + ")";
  std::string why_not;
  if (const auto nvml = root.real() ? Nvml::load(why_not) : nullptr) {
    add_nvml(*nvml, machine.gpus);
    if (machine.system.nvidia_driver.empty()) machine.system.nvidia_driver = nvml->driver_version();
    machine.system.nvidia_cuda = nvml->cuda_version();
    if (!machine.gpus.empty()) machine.cuda_libraries = cuda_libraries();
  } else if (!root.real()) {
    add_nvml_file(root, machine);
  }
  return machine;
}

}  // namespace assay
