#include "harness/machine/description.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/core/version.h"
#include "harness/json/json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay {

namespace {

std::string size_of_memory(const std::optional<std::uint64_t>& bytes) {
  return bytes ? format_bytes(static_cast<double>(*bytes)) : "unknown";
}

std::string cpu_line(const CpuPart& cpu) {
  const auto name = cpu.name == cpu.brand || cpu.brand.empty() ? cpu.name : fmt::format("{} ({})", cpu.name, cpu.brand);
  return fmt::format("{}: {}, {} cores, {} CPUs", name.empty() ? "unknown" : name, plural(cpu.sockets, "socket"),
                     cpu.cores, cpu.online.size());
}

std::string cache_line(const CpuPart& cpu) {
  std::vector<std::string> parts;
  for (const auto& cache : cpu.caches) {
    const auto* const suffix = cache.type == "data" ? "d" : cache.type == "instruction" ? "i" : "";
    parts.push_back(
        fmt::format("L{}{} {} x {}", cache.level, suffix, cache.count, format_bytes(static_cast<double>(cache.bytes))));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string clock_line(const CpuPart& cpu) {
  if (!cpu.cpufreq) return "";
  std::vector<std::string> governors;
  for (const auto& [name, cpus] : cpu.governors) governors.push_back(fmt::format("{} on {}", name, cpus));
  auto line = fmt::format("governor {}", fmt::join(governors, ", "));
  if (cpu.min_hz && cpu.max_hz) line += fmt::format("; {:.2f} to {:.2f} GHz", *cpu.min_hz / 1e9, *cpu.max_hz / 1e9);
  if (cpu.turbo) line += *cpu.turbo ? "; turbo on" : "; turbo off";
  return line;
}

std::string memory_line(const MemoryPart& memory) {
  auto line = fmt::format("{}, {} available", size_of_memory(memory.installed ? memory.installed : memory.total),
                          size_of_memory(memory.available));
  if (memory.limit) line += fmt::format(", limited to {}", size_of_memory(memory.limit));
  if (!memory.transparent_huge_pages.empty()) line += ", huge pages: " + memory.transparent_huge_pages;
  return line;
}

std::string gpu_line(const GpuPart& gpu, const std::vector<HardwareSheet>& sheets) {
  const auto* const sheet = find_hardware_by_pci(sheets, gpu.id);
  auto line = fmt::format("{} {}", gpu.pci, !gpu.name.empty() ? gpu.name : sheet ? sheet->description : gpu.id);
  if (gpu.link_width) line += fmt::format(", x{}", *gpu.link_width);
  if (const auto generation = pcie_generation(gpu.max_link_speed)) line += fmt::format(" PCIe {}", *generation);
  if (gpu.driver.empty()) line += ", no driver";
  return line;
}

std::string system_line(const SystemPart& system) {
  std::vector<std::string> parts;
  if (!system.instance_type.empty())
    parts.push_back(fmt::format("{} {}", system.provider, system.instance_type));
  else if (!system.provider.empty())
    parts.push_back(system.provider);
  if (!system.hypervisor.empty())
    parts.push_back("virtual machine (" + system.hypervisor + ")");
  else
    parts.emplace_back("no hypervisor seen");
  if (!system.container.empty()) parts.push_back("container (" + system.container + ")");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string machine_text(const Machine& machine, const Json& libraries, const std::vector<HardwareSheet>& sheets) {
  std::string text = (machine.system.hostname.empty() ? "this machine" : machine.system.hostname) + "\n";
  const auto row = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) text += fmt::format("  {:<14} {}\n", name, value);
  };
  row("CPU", cpu_line(machine.cpu));
  if (machine.cpu.usable_cores < machine.cpu.cores) row("usable", fmt::format("{} cores", machine.cpu.usable_cores));
  row("instructions", fmt::format("{}", fmt::join(machine.cpu.isa(), " ")));
  row("caches", cache_line(machine.cpu));
  row("clock", clock_line(machine.cpu));
  row("memory", memory_line(machine.memory));
  if (machine.numa.size() > 1) row("NUMA nodes", std::to_string(machine.numa.size()));
  if (machine.gpus.empty()) row("GPU", "none on the PCI bus");
  for (const auto& gpu : machine.gpus) row("GPU", gpu_line(gpu, sheets));
  if (!machine.system.nvidia_driver.empty()) {
    const auto& cuda = machine.system.nvidia_cuda;
    row("driver", "NVIDIA " + machine.system.nvidia_driver + (cuda.empty() ? "" : ", CUDA up to " + cuda));
  }
  row("system",
      fmt::format("{}, kernel {}", machine.system.os.empty() ? "Linux" : machine.system.os, machine.system.kernel));
  row("place", system_line(machine.system));
  std::vector<std::string> versions;
  for (const auto& [name, version] : libraries.items())
    versions.push_back(fmt::format("{} {}", name, version.get<std::string>()));
  row("libraries", fmt::format("{}", fmt::join(versions, ", ")));
  row("assay", fmt::format("{} ({}, {})", build_info().version, build_info().build_type, build_info().compiler));
  return text;
}

}  // namespace assay
