// What a host has besides processors and GPUs: memory channels, network ports, disks and mounts.
#pragma once

#include "harness/machine/root.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct NetworkPart {
  std::string name;                // "mlx5_0:1" of InfiniBand's class, "eth0" of Ethernet's
  bool up = false;                 // has a link
  std::optional<double> rate;      // Gbit/s
  std::optional<double> pci_rate;  // B/s one way of its PCI Express link; absent for virtual devices
  // Only of InfiniBand's class.
  std::string state = {};                       // "ACTIVE", "INIT", "DOWN"; empty: not known, as the others
  std::string board_id = {}, firmware = {};     // "MT_0000000838", "28.39.1002"
  std::optional<std::int64_t> link_width = {};  // PCI Express lanes
  std::optional<double> link_speed = {};        // GT/s of each
};
// Ports in /sys/class/infiniband: InfiniBand and RoCE.
std::vector<NetworkPart> infiniband_parts(const Root& root);
// Network devices of the type Ethernet but the loopback.
std::vector<NetworkPart> ethernet_parts(const Root& root);

// Channels of memory, as the kernel's EDAC drivers list their DIMMs (dimm_location). Absent without such a driver, and
// below a hypervisor, whose firmware may invent DIMMs.
struct MemoryChannels {
  int channels = 0;                 // of all controllers
  int populated = 0;                // with a DIMM
  std::optional<double> transfers;  // a second, of the slowest DIMM as it is configured (SMBIOS, readable by root only)
};
std::optional<MemoryChannels> memory_channels(const Root& root);

// Network devices that are hardware: InfiniBand's ports, else Ethernet's. RoCE has both, so they are never added up.
std::vector<NetworkPart> hardware_ports(const Root& root);

struct DiskPart {
  std::string name;                // "nvme0"
  std::string model;               // as the disk reports it
  std::optional<double> pci_rate;  // B/s one way of its PCI Express link
};
// NVMe disks.
std::vector<DiskPart> disk_parts(const Root& root);

struct MountPart {
  std::string source, place, type;
  bool writable = false;
};
std::vector<MountPart> mount_parts(const Root& root);
// Tells whether a file system of that type lies on other machines.
bool on_network(std::string_view type);

}  // namespace assay
