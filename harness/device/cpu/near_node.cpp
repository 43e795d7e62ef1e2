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
  CPU_AND(&near, &before_, &near);
  if (CPU_COUNT(&near) == 0 || CPU_EQUAL(&near, &before_)) return;
  moved_ = sched_setaffinity(0, sizeof near, &near) == 0;
}

RunsOnNode::~RunsOnNode() {
  if (moved_) sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace assay::cpu
