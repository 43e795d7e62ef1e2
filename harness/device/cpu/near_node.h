// Host memory near a device: the NUMA node of a PCI device, and allocating on that node.
#pragma once

#include <sched.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::cpu {

// The node of the PCI device at this address ("0000:1b:00.0"); nothing if the kernel does not say.
std::optional<int> node_of_pci(const std::string& pci, const std::filesystem::path& root = "/");

// Keeps the calling thread on those of its CPUs that belong to a NUMA node. Pages that it touches first come from
// there, and so does pinned memory, which the driver takes from the node of the calling CPU. Does nothing if the node
// is unknown or the thread may use none of its CPUs.
class RunsOnNode {
 public:
  explicit RunsOnNode(std::optional<int> node);
  ~RunsOnNode();
  RunsOnNode(const RunsOnNode&) = delete;
  RunsOnNode& operator=(const RunsOnNode&) = delete;

  // "near": every CPU of the thread belongs to the node; "far": none does; "unknown": the node is.
  std::string_view place() const { return place_; }

 private:
  std::string_view place_ = "unknown";
  cpu_set_t before_;
  bool moved_ = false;
};

// The CPUs that the calling thread may use, ascending.
std::vector<int> cpus_of_this_thread();

}  // namespace assay::cpu
