// The ports of InfiniBand and RoCE that NCCL may use, what crossed them, and which of them are nearest to which GPUs.
#pragma once

#include "harness/machine/root.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// The lines NAME=VALUE of /etc/nccl.conf.
std::map<std::string, std::string> nccl_conf(const Root& root);
// A setting of NCCL in the environment or else in /etc/nccl.conf; both empty if it stands in neither.
struct NcclSetting {
  std::string value, from;
};
NcclSetting nccl_setting(const Root& root, const std::string& name);

struct PortId {
  std::string device;  // "mlx5_0"
  std::int64_t number = 1;
  auto operator<=>(const PortId&) const = default;
};

// NCCL_IB_HCA as NCCL reads it: names of devices, each of any port or of one ("mlx5_0:1"), separated by commas. A name
// stands for all that begin with it, but after "=" only for itself; after "^" the list names what is not used.
class NamedPorts {
 public:
  explicit NamedPorts(std::string_view text);
  bool empty() const { return names_.empty(); }
  bool has(const PortId& port) const;
  // What a list of used ports names and the machine lacks; `ports` are PortIds.
  template <typename Ports>
  std::vector<std::string> missing(const Ports& ports) const {
    std::vector<std::string> all;
    for (const Name& name : names_) {
      bool found = others_;
      for (const PortId& port : ports) found = found || fits(name, port);
      if (!found) all.push_back(name.text());
    }
    return all;
  }

 private:
  struct Name {
    std::string device;
    std::optional<std::int64_t> port;
    std::string text() const;
  };
  bool fits(const Name& name, const PortId& port) const;

  bool others_ = false, exact_ = false;
  std::vector<Name> names_;
};

// Bytes that crossed a port, headers included.
struct PortBytes {
  PortId port;
  double sent = 0, received = 0;
};

// Every port, in the order of devices.
std::vector<PortId> infiniband_ports(const Root& root);
// What has crossed each port since its counters were cleared. Ports whose counters are absent (EFA has others), or have
// reached the end of their 32 bits on old hardware, are left out.
std::vector<PortBytes> read_port_bytes(const Root& root);

// NCCL's ports that are nearest to a GPU on the PCI bus. Empty for a place on the bus that is unknown.
std::vector<PortId> nearest_ports(const Root& root, const std::string& gpu_pci);

// Bytes that a GPU sent to and received from other hosts.
struct GpuBytes {
  std::string pci;  // empty for a rank without a GPU
  double sent = 0, received = 0;
};
// What each port must at least have carried if every GPU used the ports nearest to it. Several GPUs with the same
// nearest ports load these evenly; more ports than GPUs may stay idle and are left out, as are GPUs whose place on the
// bus is unknown.
std::vector<PortBytes> expected_port_bytes(const Root& root, std::span<const GpuBytes> gpus);

}  // namespace assay
