#include "suites/transfer/host_buffer.h"

#include "harness/device/cpu/near_node.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace assay::transfer {

std::optional<GpuPart> gpu_on_bus(const std::string& uuid, const std::string& pci) {
  std::optional<GpuPart> found;
  for (GpuPart& gpu : probe_gpus(Root()))
    if (gpu.pci == pci) found = std::move(gpu);
  if (found && found->link_speed && found->link_width && found->max_link_speed && found->max_link_width) return found;
  std::string why_not;
  const auto nvml = Nvml::load(why_not);
  const auto device = nvml ? nvml->find(uuid, pci) : std::nullopt;
  if (!device) return found;
  if (!found) found.emplace();
  add_link(*device, *found);
  return found;
}

Buffer allocate_near(Device& device, std::size_t bytes, Memory memory, std::optional<int> node) {
  const cpu::RunsOnNode near(node);
  Buffer buffer = device.allocate(bytes, memory);
  if (bytes > 0) std::memset(buffer.data(), 0, bytes);
  return buffer;
}

std::optional<int> node_of(const void* address) {
  constexpr unsigned long flag_node = 1, flag_address = 2;  // MPOL_F_*, whose header <numaif.h> is libnuma's
  int node = -1;
  if (syscall(SYS_get_mempolicy, &node, nullptr, 0, address, flag_node | flag_address) != 0 || node < 0)
    return std::nullopt;
  return node;
}

std::string link_text(std::optional<double> gigatransfers, std::optional<std::int64_t> width) {
  const std::optional<int> generation = pcie_generation(gigatransfers);
  return generation && width ? fmt::format("gen {} x{}", *generation, *width) : "unknown";
}

}  // namespace assay::transfer
