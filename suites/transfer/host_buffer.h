// Host memory near a GPU, and the speed of the bus between them.
#pragma once

#include "harness/device/device.h"
#include "harness/machine/machine.h"

#include <cstddef>
#include <optional>
#include <string>

namespace assay::transfer {

// The GPU at this bus address ("0000:e0:00.0"), from the kernel; its link also from NVML, in case a container or a
// virtual bus hides it. Nullopt if neither knows it.
std::optional<GpuPart> gpu_on_bus(const std::string& uuid, const std::string& pci);

// Allocates and touches every page from the node's CPUs, if this process may use them, so the pages are there.
Buffer allocate_near(Device& device, std::size_t bytes, Memory memory, std::optional<int> node);
// The node of the page at this address; nothing if the system does not say.
std::optional<int> node_of(const void* address);

// "gen 5 x16"; "unknown" if the kernel does not report it.
std::string link_text(std::optional<double> gigatransfers, std::optional<std::int64_t> width);

}  // namespace assay::transfer
