// What a host has besides processors, memory and GPUs: network ports and mounts, as an expectation names them.
#pragma once

#include "harness/machine/root.h"

#include <optional>
#include <string>
#include <vector>

namespace assay {

struct NetworkPart {
  std::string name;            // "mlx5_0:1" of InfiniBand's class, "eth0" of Ethernet's
  bool up = false;             // has a link
  std::optional<double> rate;  // Gbit/s
};
// Ports in /sys/class/infiniband: InfiniBand and RoCE.
std::vector<NetworkPart> infiniband_parts(const Root& root);
// Network devices of the type Ethernet but the loopback.
std::vector<NetworkPart> ethernet_parts(const Root& root);

struct MountPart {
  std::string source, place, type;
  bool writable = false;
};
std::vector<MountPart> mount_parts(const Root& root);

}  // namespace assay
