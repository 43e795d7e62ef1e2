#include "harness/hosts/host_info.h"

#include "harness/channel/channel.h"
#include "harness/core/host.h"
#include "harness/device/cpu/topology.h"
#include "harness/hosts/cpu_share.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace assay {

namespace {

std::set<int> cpus_of(const HostInfo& host) {
  std::set<int> all;
  for (const auto& core : host.cores) all.insert(core.begin(), core.end());
  return all;
}

}  // namespace

HostInfo probe_host(int gpus) {
  HostInfo host;
  host.name = this_host();
  utsname kernel{};
  if (uname(&kernel) == 0) host.kernel_name = kernel.nodename;
  host.architecture = machine_architecture();
  host.boot_id = boot_id();
  std::error_code none;
  host.network = std::filesystem::read_symlink("/proc/self/ns/net", none).string();
  host.version = channel_version();
  if (const char* path = std::getenv("LD_LIBRARY_PATH")) host.library_path = path;
  host.cores = usable_cores();
  const std::set<int> usable = cpus_of(host);
  for (const cpu::NumaNode& node : cpu::topology().numa_nodes) {
    std::vector<int> cpus;
    for (const int cpu : node.cpus)
      if (usable.contains(cpu)) cpus.push_back(cpu);
    if (!cpus.empty()) host.nodes.push_back({node.number, std::move(cpus)});
  }
  host.core_count = usable_core_count();
  host.cpu_count = usable_cpu_count();
  host.gpu_count = gpus;
  if (gpus > 0) host.gpus = gpus_of_environment();
  return host;
}

bool share_cpus(const HostInfo& a, const HostInfo& b) {
  if (a.boot_id.empty() || a.boot_id != b.boot_id) return false;
  const std::set<int> one = cpus_of(a), other = cpus_of(b);
  return std::ranges::any_of(one, [&](int cpu) { return other.contains(cpu); });
}

}  // namespace assay
