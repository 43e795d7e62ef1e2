// The host: memory, CPUs, clock, limits, processes, and the facts of its system.
#include "harness/audit/areas.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/core/utc.h"
#include "harness/device/cpu/cpu_list.h"
#include "harness/machine/processes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sys/stat.h>
#include <sys/timex.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace assay::audit {

namespace {

constexpr double sure_difference = 24 * 3600;  // seconds; time zones make up to 14 hours

std::string bytes_text(std::uint64_t bytes) { return format_bytes(static_cast<double>(bytes)); }
std::string time_text(double unix_seconds) { return utc_text(static_cast<std::time_t>(unix_seconds)); }

void audit_memory(const Subject& subject, Report& report) {
  const auto& memory = subject.machine.memory;
  if (memory.total && memory.available &&
      static_cast<double>(*memory.available) < 0.05 * static_cast<double>(*memory.total))
    report.add("memory-low", "",
               fmt::format("{} of {} available", bytes_text(*memory.available), bytes_text(*memory.total)));
  std::optional<std::uint64_t> least, most;
  for (const NumaPart& node : subject.machine.numa) {
    if (!node.bytes || *node.bytes == 0 || node.cpus.empty()) continue;
    least = std::min(least.value_or(*node.bytes), *node.bytes);
    most = std::max(most.value_or(*node.bytes), *node.bytes);
  }
  // The kernel itself takes some of the first node.
  if (least && most && static_cast<double>(*least) < 0.92 * static_cast<double>(*most))
    report.add("memory-uneven", "", fmt::format("NUMA nodes have {} to {}", bytes_text(*least), bytes_text(*most)));
  // Rounded to whole GiB, as the kernel's own share differs from boot to boot.
  if (const auto all = memory.installed ? memory.installed : memory.total)
    report.fact("memory GiB", fmt::format("{:.0f}", static_cast<double>(*all) / (1 << 30)));
}

void audit_cpus(const Subject& subject, Report& report) {
  const auto& root = subject.root;
  const auto& cpu = subject.machine.cpu;
  const auto offline = root.text("sys/devices/system/cpu/offline").value_or("");
  const auto smt = root.text("sys/devices/system/cpu/smt/control").value_or("");
  // The possible CPUs beyond those present are no CPUs; siblings that SMT's switch turned off are meant so.
  const auto present = cpu_list(root.text("sys/devices/system/cpu/present").value_or(""));
  std::vector<int> off;
  for (const int number : cpu_list(offline))
    if (std::ranges::find(present, number) != present.end()) off.push_back(number);
  if (!off.empty() && smt != "off" && smt != "forceoff")
    report.add("cpus-offline", "", fmt::format("CPUs {} of {}", cpu_list_text(off), present.size()));
  report.fact("cpu", cpu.name);
  if (cpu.brand != cpu.name) report.fact("cpu brand", cpu.brand);
  report.fact("cpus", std::to_string(cpu.online.size()));
  report.fact("microcode", cpu.microcode);
  std::vector<std::string> governors;
  for (const auto& [governor, count] : cpu.governors) governors.push_back(governor);
  report.fact("governor", joined(governors));
  if (cpu.smt) report.fact("smt", *cpu.smt ? "on" : "off");
  std::vector<std::string> vulnerable;
  int mitigated = 0;
  for (const std::string& name : root.list("sys/devices/system/cpu/vulnerabilities")) {
    const auto state = root.text("sys/devices/system/cpu/vulnerabilities/" + name).value_or("");
    if (state.starts_with("Vulnerable")) vulnerable.push_back(name);
    if (state.starts_with("Mitigation")) ++mitigated;
  }
  if (mitigated > 0 || !vulnerable.empty())
    report.fact("mitigations", vulnerable.empty()
                                   ? fmt::format("{} on", mitigated)
                                   : fmt::format("{} on, vulnerable: {}", mitigated, fmt::join(vulnerable, " ")));
}

bool synchronised(const Root& root) {
  if (root.real()) {
    struct timex state {};
    const int answer = ::adjtimex(&state);
    return answer < 0 || (answer != TIME_ERROR && (state.status & STA_UNSYNC) == 0);
  }
  if (root.exists("run/systemd/timesync/synchronized")) return true;
  return std::ranges::any_of(std::to_array<std::string_view>({"chronyd", "ntpd", "ptp4l", "phc2sys"}),
                             [&](std::string_view name) { return process_runs(root, name); });
}

// The time now against moments that have passed for sure.
void audit_clock(const Subject& subject, Report& report) {
  const auto& [root, machine, now, boot] = subject;
  std::string wrong;
  if (boot && *boot > now + sure_difference) wrong = "the kernel started at " + time_text(*boot);
  for (const char* file : {"var/lib/systemd/timesync/clock", "var/log/wtmp", "var/log/syslog", "var/log/kern.log",
                           "var/log/messages", "run/utmp"}) {
    struct stat found {};
    if (::stat((root.path() / file).c_str(), &found) != 0) continue;
    const auto written = static_cast<double>(found.st_mtim.tv_sec);
    if (written > now + sure_difference) wrong = fmt::format("/{} was written at {}", file, time_text(written));
  }
  // A hardware clock may run in local time.
  if (const auto rtc = root.integer("sys/class/rtc/rtc0/since_epoch"))
    if (std::abs(static_cast<double>(*rtc) - now) > sure_difference)
      wrong = "the hardware clock says " + time_text(static_cast<double>(*rtc));
  if (!wrong.empty()) report.add("clock-wrong", "", fmt::format("it is {}, but {}", time_text(now), wrong));
  if (!synchronised(root)) report.add("clock-unsynchronised", "", "no time service keeps it");
}

void audit_limits(const Subject& subject, Report& report) {
  const auto& root = subject.root;
  for (const std::string& line : lines(root.text("proc/self/limits").value_or(""))) {
    if (!line.starts_with("Max locked memory")) continue;
    const auto columns = words(std::string_view(line).substr(17));
    const auto bytes = columns.empty() ? std::nullopt : to_integer(columns[0]);
    constexpr std::int64_t least = std::int64_t{1} << 30;  // NCCL and MPI pin hundreds of MiB
    if (bytes && *bytes < least && !root.list("sys/class/infiniband").empty())
      report.add("memlock", "",
                 fmt::format("ulimit -l allows {}",
                             bytes_text(static_cast<std::uint64_t>(std::max<std::int64_t>(*bytes, 0)))));
  }
}

void audit_processes(const Subject& subject, Report& report) {
  int zombies = 0;
  std::vector<std::string> blocked;
  for (const auto& [pid, process] : read_processes(subject.root)) {
    if (process.kernel) continue;
    if (process.state == 'Z') ++zombies;
    if (process.state == 'D') blocked.push_back(fmt::format("{} {}", process.name, pid));
  }
  constexpr int many_zombies = 50;
  constexpr std::size_t many_blocked = 8;  // reading a disk blocks, too, but rarely so many at once
  if (zombies >= many_zombies) report.add("zombies", "", fmt::format("{} processes", zombies));
  if (blocked.size() >= many_blocked) {
    const auto count = blocked.size();
    blocked.resize(5);
    report.add("processes-blocked", "", fmt::format("{} processes: {}, ...", count, fmt::join(blocked, ", ")));
  }
}

void add_facts(const Subject& subject, Report& report) {
  const auto& [root, machine, now, boot] = subject;
  const auto& system = machine.system;
  report.fact("kernel", system.kernel);
  report.fact("os", system.os);
  for (const auto& [name, member] : {std::pair("bios", "bios_version"), std::pair("product", "product_name")})
    if (const auto found = system.dmi.find(member); found != system.dmi.end()) report.fact(name, found->second);
  report.fact("container", system.container.empty() ? "none" : system.container);
  report.fact("virtual machine", system.hypervisor.empty() ? "none" : system.hypervisor);
  report.fact("clock source", system.clocksource);
  report.fact("transparent huge pages", machine.memory.transparent_huge_pages);
  // Without what names this host's disks and addresses.
  std::vector<std::string> command_line = words(root.text("proc/cmdline").value_or(""));
  std::erase_if(command_line, [](const std::string& word) {
    return word.find("UUID=") != word.npos || word.starts_with("root=") || word.starts_with("ip=") ||
           word.starts_with("resume=") || word.starts_with("BOOT");
  });
  report.fact("kernel command line", joined(command_line, " "));
  // Settings that move figures of training, or that make runs fail.
  for (const char* name : {"vm.overcommit_memory", "vm.max_map_count", "vm.swappiness", "vm.zone_reclaim_mode",
                           "vm.nr_hugepages", "kernel.numa_balancing", "kernel.pid_max", "kernel.perf_event_paranoid",
                           "fs.file-max", "net.core.rmem_max", "net.core.wmem_max", "net.ipv4.tcp_rmem",
                           "net.ipv4.tcp_wmem", "net.core.somaxconn", "net.ipv4.tcp_congestion_control"}) {
    std::string file = name;
    std::ranges::replace(file, '.', '/');
    report.fact(std::string("sysctl ") + name, root.text("proc/sys/" + file).value_or(""));
  }
}

}  // namespace

void audit_host(const Subject& subject, Report& report) {
  audit_memory(subject, report);
  audit_cpus(subject, report);
  audit_clock(subject, report);
  audit_limits(subject, report);
  audit_processes(subject, report);
  if (subject.root.exists("run/reboot-required") || subject.root.exists("var/run/reboot-required"))
    report.add("reboot-required", "", subject.root.text("run/reboot-required").value_or("/var/run/reboot-required"));
  add_facts(subject, report);
}

}  // namespace assay::audit
