// The environment as JSON.
#include "harness/machine/environment.h"

#include "harness/core/version.h"
#include "harness/device/cpu/cpu_list.h"
#include "harness/machine/libraries.h"

#include <nlohmann/json.hpp>

#include <unistd.h>

namespace assay {
namespace {

Json known(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

template <typename T>
Json known(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json cpu_json(const CpuPart& cpu) {
  Json caches = Json::array();
  for (const auto& cache : cpu.caches)
    caches.push_back({{"level", cache.level},
                      {"type", cache.type},
                      {"bytes", cache.bytes},
                      {"count", cache.count},
                      {"cpus_sharing", cache.cpus_sharing}});
  return {{"name", known(cpu.name)},
          {"brand", known(cpu.brand)},
          {"vendor", known(cpu.vendor)},
          {"family", known(cpu.family)},
          {"model", known(cpu.model)},
          {"stepping", known(cpu.stepping)},
          {"microcode", known(cpu.microcode)},
          {"sockets", cpu.sockets},
          {"cores", cpu.cores},
          {"cpus", cpu.online.size()},
          {"usable_cores", cpu.usable_cores},
          {"usable_cpus", cpu_list_text(cpu.usable)},
          {"quota_cpus", known(cpu.quota_cpus)},
          {"smt", known(cpu.smt)},
          {"isa", cpu.isa()},
          {"caches", std::move(caches)},
          {"governors", cpu.cpufreq ? Json(cpu.governors) : Json(nullptr)},
          {"frequency_driver", known(cpu.frequency_driver)},
          {"turbo", known(cpu.turbo)},
          {"clocks_hz", {{"min", known(cpu.min_hz)}, {"base", known(cpu.base_hz)}, {"max", known(cpu.max_hz)}}},
          {"power_limits_watts", cpu.power_limits.empty() ? Json(nullptr) : Json(cpu.power_limits)},
          {"throttle_events", known(cpu.throttled)}};
}

Json channels_json(const MemoryChannels& memory) {
  return {{"all", memory.channels}, {"populated", memory.populated}, {"transfers_per_second", known(memory.transfers)}};
}

Json network_json(const std::vector<NetworkPart>& ports) {
  Json all = Json::array();
  for (const auto& port : ports)
    all.push_back({{"name", port.name},
                   {"up", port.up},
                   {"gigabits", known(port.rate)},
                   {"pci_bytes_per_second", known(port.pci_rate)}});
  return all;
}

Json disks_json(const std::vector<DiskPart>& disks) {
  Json all = Json::array();
  for (const auto& disk : disks)
    all.push_back({{"name", disk.name}, {"model", known(disk.model)}, {"pci_bytes_per_second", known(disk.pci_rate)}});
  return all;
}

Json memory_json(const MemoryPart& memory, const std::optional<MemoryChannels>& channels) {
  return {{"channels", channels ? channels_json(*channels) : Json(nullptr)},
          {"installed_bytes", known(memory.installed)},
          {"total_bytes", known(memory.total)},
          {"available_bytes", known(memory.available)},
          {"limit_bytes", known(memory.limit)},
          {"swap_total_bytes", known(memory.swap_total)},
          {"swap_used_bytes", known(memory.swap_used)},
          {"page_bytes", sysconf(_SC_PAGESIZE)},
          {"transparent_huge_pages", known(memory.transparent_huge_pages)},
          {"huge_pages_bytes", known(memory.huge_pages_bytes)},
          {"numa_balancing", known(memory.numa_balancing)},
          {"shm_bytes", known(memory.shm_bytes)}};
}

Json errors_json(const GpuErrorCounts& errors) {
  return {{"ecc_corrected", known(errors.ecc_corrected)},       {"ecc_uncorrected", known(errors.ecc_uncorrected)},
          {"rows_remapped", known(errors.rows_remapped)},       {"remap_pending", known(errors.remap_pending)},
          {"remap_failures", known(errors.remap_failures)},     {"nvlink", known(errors.nvlink_errors)},
          {"nvlink_corrected", known(errors.nvlink_corrected)}, {"pcie_replays", known(errors.pcie_replays)}};
}

Json gpus_json(const std::vector<GpuPart>& gpus) {
  Json all = Json::array();
  for (const auto& gpu : gpus)
    all.push_back({{"pci", gpu.pci},
                   {"id", gpu.id},
                   {"name", known(gpu.name)},
                   {"uuid", known(gpu.uuid)},
                   {"driver", known(gpu.driver)},
                   {"link_width", known(gpu.link_width)},
                   {"max_link_width", known(gpu.max_link_width)},
                   {"link_gigatransfers", known(gpu.link_speed)},
                   {"max_link_gigatransfers", known(gpu.max_link_speed)},
                   {"slot_link_gigatransfers", known(gpu.slot_link_speed)},
                   {"link_generation", known(pcie_generation(gpu.link_speed))},
                   {"max_link_generation", known(pcie_generation(gpu.max_link_speed))},
                   {"numa_node", known(gpu.numa_node)},
                   {"mig", known(gpu.mig)},
                   {"mps", known(gpu.mps)},
                   {"ecc", known(gpu.ecc)},
                   {"persistence", known(gpu.persistence)},
                   {"errors", errors_json(gpu.errors)},
                   {"power_limit_watts", known(gpu.power_limit)},
                   {"default_power_limit_watts", known(gpu.default_power_limit)},
                   {"applications_clock_hz", known(gpu.applications_clock)},
                   {"default_applications_clock_hz", known(gpu.default_applications_clock)},
                   {"max_clock_hz", known(gpu.max_clock)},
                   {"throttle_reasons", known(gpu.throttle_reasons)},
                   {"clients", gpu.clients.size()}});
  return all;
}

}  // namespace

Json environment_json(const Machine& machine) {
  const auto& build = build_info();
  const auto& system = machine.system;
  Json numa = Json::array();
  for (const auto& node : machine.numa)
    numa.push_back({{"node", node.number}, {"cpus", cpu_list_text(node.cpus)}, {"bytes", known(node.bytes)}});
  auto found = libraries();
  found.insert(machine.cuda_libraries.begin(), machine.cuda_libraries.end());
  return {
      {"assay",
       {{"version", std::string(build.version)},
        {"commit", known(std::string(build.commit))},
        {"dirty", build.dirty},
        {"compiler", std::string(build.compiler)},
        {"build_type", std::string(build.build_type)},
        {"flags", std::string(build.flags)}}},
      {"libraries", std::move(found)},
      {"hostnames", Json::array({system.hostname})},
      {"os",
       {{"name", known(system.os)}, {"kernel", known(system.kernel)}, {"architecture", known(system.architecture)}}},
      {"cpu", cpu_json(machine.cpu)},
      {"numa_nodes", std::move(numa)},
      {"memory", memory_json(machine.memory, machine.channels)},
      {"network", network_json(machine.network)},
      {"disks", disks_json(machine.disks)},
      {"gpus", gpus_json(machine.gpus)},
      {"drivers", {{"nvidia", known(system.nvidia_driver)}, {"cuda", known(system.nvidia_cuda)}}},
      {"container", known(system.container)},
      {"virtual_machine", known(system.hypervisor)},
      {"cloud", {{"provider", known(system.provider)}, {"instance_type", known(system.instance_type)}}},
      {"dmi", system.dmi.empty() ? Json(nullptr) : Json(system.dmi)},
      {"limits",
       {{"open_files", known(system.open_files)}, {"address_space_bytes", known(machine.memory.address_space_limit)}}},
      {"clocksource", known(system.clocksource)},
      {"load", known(system.load)},
      {"steal_since_boot", known(system.steal_since_boot)}};
}

}  // namespace assay
