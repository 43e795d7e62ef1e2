// The processor: from cpuinfo, sysfs topology and caches, cpufreq and powercap.
#include "harness/core/text.h"
#include "harness/device/cpu/cpu_list.h"
#include "harness/device/cpu/cpuid.h"
#include "harness/device/cpu/limits.h"
#include "harness/device/cpu/names.h"
#include "harness/device/cpu/topology.h"
#include "harness/machine/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

namespace assay {
namespace {

constexpr std::string_view cpus_folder = "sys/devices/system/cpu/";

std::string cpu_folder(int cpu) { return std::string(cpus_folder) + "cpu" + std::to_string(cpu) + "/"; }

// "Arm Neoverse V2", of a chip with several kinds of cores "Arm Cortex-A720 + Cortex-A520".
void name_arm(std::string_view info, const std::string& implementer, CpuPart& cpu) {
  std::vector<std::string> cores;
  for (const std::string& line : lines(info))
    if (const auto part = field(line, "CPU part"))
      if (auto core = cpu::arm_core(implementer, *part); std::ranges::find(cores, core) == cores.end())
        cores.push_back(std::move(core));
  cpu.vendor = cpu::arm_implementer(implementer);
  if (!cores.empty()) cpu.name = fmt::format("{} {}", cpu.vendor, fmt::join(cores, " + "));
}

void read_cpuinfo(const Root& root, CpuPart& cpu) {
  const auto info = root.text("proc/cpuinfo").value_or("");
  const auto first = [&](std::initializer_list<std::string_view> names) {
    for (const auto name : names)
      if (const auto value = field(info, name); value && !value->empty()) return *value;
    return std::string();
  };
  cpu.brand = first({"model name", "Model", "cpu model", "cpu"});
  cpu.vendor = first({"vendor_id", "CPU implementer"});
  cpu.family = to_integer(first({"cpu family"}));
  cpu.model = to_integer(first({"model"}));
  cpu.stepping = to_integer(first({"stepping"}));
  cpu.microcode = first({"microcode"});
  cpu.flags = words(first({"flags", "Features"}));
  cpu.name = cpu.brand;
  if (const auto implementer = field(info, "CPU implementer")) name_arm(info, *implementer, cpu);
  if (root.real()) {
    const auto& processor = cpu::processor();
    if (!processor.name().empty() && !cpu.name.starts_with(processor.name())) cpu.name = processor.name();
    if (cpu.brand.empty()) cpu.brand = processor.brand;
  }
  const auto vendor = cpu.vendor == "GenuineIntel" ? "Intel" : cpu.vendor == "AuthenticAMD" ? "AMD" : "";
  if (const auto other =
          cpu::contradiction(vendor, static_cast<int>(cpu.family.value_or(0)), static_cast<int>(cpu.model.value_or(0)),
                             static_cast<int>(cpu.stepping.value_or(0)),
                             [&](std::string_view flag) { return cpu.has(std::string(flag)); })) {
    cpu.name = other->name;
    cpu.contradicting = other->flag;
  }
  if (cpu.online.empty()) {  // no sysfs: one "processor" line per CPU
    for (const auto& line : lines(info))
      if (line.starts_with("processor") && to_integer(field(line, "processor").value_or("")))
        cpu.online.push_back(static_cast<int>(*to_integer(*field(line, "processor"))));
  }
}

void read_topology(const Root& root, CpuPart& cpu) {
  std::set<std::int64_t> sockets;
  std::set<std::string> cores, usable_cores;
  std::size_t max_threads = 1;
  for (const int number : cpu.online) {
    const auto folder = cpu_folder(number) + "topology/";
    // -1 if the firmware does not number its packages.
    sockets.insert(std::max<std::int64_t>(root.integer(folder + "physical_package_id").value_or(0), 0));
    const auto siblings = root.text(folder + "thread_siblings_list").value_or(std::to_string(number));
    cores.insert(siblings);
    max_threads = std::max(max_threads, cpu_list(siblings).size());
    if (std::ranges::find(cpu.usable, number) != cpu.usable.end()) usable_cores.insert(siblings);
  }
  cpu.sockets = static_cast<int>(sockets.size());
  cpu.cores = static_cast<int>(cores.size());
  cpu.usable_cores = static_cast<int>(usable_cores.size());
  if (const auto active = root.integer("sys/devices/system/cpu/smt/active"))
    cpu.smt = *active != 0;
  else if (!cpu.online.empty() && root.exists(cpu_folder(cpu.online.front()) + "topology"))
    cpu.smt = max_threads > 1;
}

void read_caches(const Root& root, CpuPart& cpu) {
  std::set<std::tuple<std::int64_t, std::string, std::string>> seen;
  for (const int number : cpu.online)
    for (const auto& name : root.list(cpu_folder(number) + "cache")) {
      if (!name.starts_with("index")) continue;
      const auto folder = cpu_folder(number) + "cache/" + name + "/";
      const auto level = root.integer(folder + "level");
      const auto type = lower_case(root.text(folder + "type").value_or(""));
      const auto shared = root.text(folder + "shared_cpu_list").value_or(std::to_string(number));
      const auto bytes = cpu::cache_size(root.text(folder + "size").value_or(""));
      if (!level || bytes == 0 || !seen.emplace(*level, type, shared).second) continue;
      const auto sharing = static_cast<int>(cpu_list(shared).size());
      const auto alike = std::ranges::find_if(cpu.caches, [&](const CacheLevel& each) {
        return each.level == *level && each.type == type && each.bytes == bytes && each.cpus_sharing == sharing;
      });
      if (alike != cpu.caches.end())
        ++alike->count;
      else
        cpu.caches.push_back({static_cast<int>(*level), type, bytes, 1, sharing});
    }
  std::ranges::stable_sort(cpu.caches, {}, &CacheLevel::level);
}

std::optional<double> kilohertz(const Root& root, const std::string& file) {
  const auto value = root.integer(file);
  return value && *value > 0 ? std::optional(static_cast<double>(*value) * 1e3) : std::nullopt;
}

void read_frequency(const Root& root, CpuPart& cpu) {
  for (const int number : cpu.online)
    if (const auto governor = root.text(cpu_folder(number) + "cpufreq/scaling_governor")) ++cpu.governors[*governor];
  cpu.cpufreq = !cpu.governors.empty();
  if (cpu.cpufreq) {
    const auto folder = cpu_folder(cpu.online.front()) + "cpufreq/";
    cpu.frequency_driver = root.text(folder + "scaling_driver").value_or("");
    cpu.min_hz = kilohertz(root, folder + "cpuinfo_min_freq");
    cpu.max_hz = kilohertz(root, folder + "cpuinfo_max_freq");
    cpu.base_hz = kilohertz(root, folder + "base_frequency");
  }
  if (const auto off = root.integer("sys/devices/system/cpu/intel_pstate/no_turbo"))
    cpu.turbo = *off == 0;
  else if (const auto boost = root.integer("sys/devices/system/cpu/cpufreq/boost"))
    cpu.turbo = *boost != 0;
  if (!cpu.online.empty())
    cpu.throttled = root.integer(cpu_folder(cpu.online.front()) + "thermal_throttle/package_throttle_count");
  for (const auto& name : root.list("sys/class/powercap")) {
    if (!name.starts_with("intel-rapl:") || std::ranges::count(name, ':') != 1) continue;
    const auto folder = "sys/class/powercap/" + name + "/";
    const auto package = root.text(folder + "name").value_or("");
    const auto limit = root.integer(folder + "constraint_0_power_limit_uw");
    if (package.starts_with("package") && limit && *limit > 0)
      cpu.power_limits[package] = static_cast<double>(*limit) / 1e6;
  }
}

}  // namespace

std::vector<std::string> CpuPart::isa() const {
  static constexpr std::array<std::string_view, 12> exact = {"sse4_2", "avx",  "avx2",    "fma",     "f16c", "avx_vnni",
                                                             "asimd",  "bf16", "asimddp", "asimdhp", "i8mm", "fphp"};
  std::vector<std::string> found;
  for (const auto& flag : flags)
    if (std::ranges::find(exact, flag) != exact.end() || flag.starts_with("avx512") || flag.starts_with("avx10") ||
        flag.starts_with("amx_") || flag.starts_with("sve"))
      found.push_back(flag);
  return found;
}

bool CpuPart::has(const std::string& flag) const { return std::ranges::find(flags, flag) != flags.end(); }

CpuPart probe_cpu(const Root& root) {
  CpuPart cpu;
  cpu.online = cpu_list(root.text(std::string(cpus_folder) + "online").value_or(""));
  read_cpuinfo(root, cpu);
  const auto allowed = cpu_list(field(root.text("proc/self/status").value_or(""), "Cpus_allowed_list").value_or(""));
  for (const int number : cpu.online)
    if (allowed.empty() || std::ranges::find(allowed, number) != allowed.end()) cpu.usable.push_back(number);
  cpu.quota_cpus = cpu::cpu_quota(root.path());
  read_topology(root, cpu);
  read_caches(root, cpu);
  read_frequency(root, cpu);
  return cpu;
}

}  // namespace assay
