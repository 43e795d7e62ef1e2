#include "harness/device/cpu/near_node.h"

#include "harness/device/cpu/topology.h"

#include <fstream>

namespace assay::cpu {

std::optional<int> node_of_pci(const std::string& pci, const std::filesystem::path& root) {
  std::ifstream file(root / "sys/bus/pci/devices" / pci / "numa_node");
  int node = -1;
  if (!(file >> node) || node < 0) return std::nullopt;
  return node;
}

RunsOnNode::RunsOnNode(std::optional<int> node) {
  if (!node || sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  cpu_set_t near;
  CPU_ZERO(&near);
  for (const NumaNode& known : topology().numa_nodes)
    if (known.number == *node)
      for (const int cpu : known.cpus)
        if (cpu < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(cpu), &near);
  if (CPU_COUNT(&near) == 0) return;
  CPU_AND(&near, &before_, &near);
  if (CPU_COUNT(&near) == 0) {
    place_ = "far";
    return;
  }
  moved_ = !CPU_EQUAL(&near, &before_) && sched_setaffinity(0, sizeof near, &near) == 0;
  if (moved_ || CPU_EQUAL(&near, &before_)) place_ = "near";
}

RunsOnNode::~RunsOnNode() {
  if (moved_) sched_setaffinity(0, sizeof before_, &before_);
}

std::vector<int> cpus_of_this_thread() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  return cpus;
}

}  // namespace assay::cpu
