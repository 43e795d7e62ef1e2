#include "harness/machine/host_parts.h"

#include "harness/core/text.h"
#include "harness/machine/hardware.h"
#include "harness/machine/machine.h"

#include <algorithm>
#include <cstdint>
#include <set>

namespace assay {

namespace {

// Reads the link of the PCI device in that folder of /sys.
std::optional<double> link_rate(const Root& root, const std::string& folder) {
  const auto width = lanes(root.integer(folder + "current_link_width"));
  const auto speed = gigatransfers(root.text(folder + "current_link_speed"));
  return width && speed ? std::optional(pcie_rate(static_cast<double>(*width), *speed)) : std::nullopt;
}

// The channel in "channel 3 slot 0", "csrow 0 channel 3" or "mc 0 channel 3".
std::optional<std::int64_t> channel_in(const std::string& location) {
  const auto parts = words(location);
  for (std::size_t i = 0; i + 1 < parts.size(); ++i)
    if (parts[i] == "channel") return to_integer(parts[i + 1]);
  return std::nullopt;
}

// The slowest configured speed of the DIMMs that SMBIOS lists, in transfers a second (DMTF DSP0134, type 17).
std::optional<double> configured_transfers(const Root& root) {
  constexpr std::size_t size_at = 0x0c, speed_at = 0x20, long_speed_at = 0x58;
  constexpr std::uint32_t longer = 0xffff;
  std::optional<double> slowest;
  for (const std::string& entry : root.list("sys/firmware/dmi/entries")) {
    if (!entry.starts_with("17-")) continue;
    const auto raw = root.text("sys/firmware/dmi/entries/" + entry + "/raw").value_or("");
    const auto number = [&](std::size_t at, std::size_t bytes) {
      std::uint32_t value = 0;
      for (std::size_t i = 0; i < bytes && at + i < raw.size(); ++i)
        value |= static_cast<std::uint32_t>(static_cast<unsigned char>(raw[at + i])) << (8 * i);
      return value;
    };
    if (number(size_at, 2) == 0) continue;
    std::uint32_t speed = number(speed_at, 2);
    if (speed == longer) speed = number(long_speed_at, 4);
    if (speed == 0) return std::nullopt;  // this DIMM may be the slowest
    slowest = std::min(slowest.value_or(1e18), speed * 1e6);
  }
  return slowest;
}

}  // namespace

std::optional<MemoryChannels> memory_channels(const Root& root) {
  MemoryChannels found;
  for (const std::string& controller : root.list("sys/devices/system/edac/mc")) {
    if (!controller.starts_with("mc")) continue;
    const std::string folder = "sys/devices/system/edac/mc/" + controller + "/";
    const auto last = channel_in(root.text(folder + "max_location").value_or(""));
    std::set<std::int64_t> used;
    for (const std::string& dimm : root.list(folder)) {
      if (!dimm.starts_with("dimm") || root.integer(folder + dimm + "/size").value_or(0) == 0) continue;
      const auto channel = channel_in(root.text(folder + dimm + "/dimm_location").value_or(""));
      if (!channel) return std::nullopt;  // the driver does not tell channels apart
      used.insert(*channel);
    }
    // Without the last place the number of channels is unknown.
    if (!last || *last < 0 || *last > 63 || (!used.empty() && *used.rbegin() > *last)) return std::nullopt;
    found.channels += static_cast<int>(*last) + 1;
    found.populated += static_cast<int>(used.size());
  }
  if (found.populated == 0) return std::nullopt;
  found.transfers = configured_transfers(root);
  return found;
}

std::vector<NetworkPart> hardware_ports(const Root& root) {
  std::vector<NetworkPart> ports = infiniband_parts(root);
  const bool infiniband = std::ranges::any_of(ports, &NetworkPart::up);
  if (!infiniband) ports = ethernet_parts(root);
  const std::string folder = infiniband ? "sys/class/infiniband/" : "sys/class/net/";
  const auto device_of = [&](const NetworkPart& port) {
    return folder + port.name.substr(0, port.name.find(':')) + "/device";
  };
  std::erase_if(ports, [&](const NetworkPart& port) { return !root.exists(device_of(port)); });
  for (NetworkPart& port : ports) port.pci_rate = link_rate(root, device_of(port) + "/");
  return ports;
}

std::vector<DiskPart> disk_parts(const Root& root) {
  std::vector<DiskPart> disks;
  for (const std::string& name : root.list("sys/class/nvme")) {
    const std::string folder = "sys/class/nvme/" + name + "/";
    disks.push_back({name, root.text(folder + "model").value_or(""), link_rate(root, folder + "device/")});
  }
  return disks;
}

std::vector<NetworkPart> infiniband_parts(const Root& root) {
  std::vector<NetworkPart> parts;
  for (const std::string& device : root.list("sys/class/infiniband"))
    for (const std::string& number : root.list("sys/class/infiniband/" + device + "/ports")) {
      const auto folder = "sys/class/infiniband/" + device + "/ports/" + number + "/";
      NetworkPart part;
      part.name = device + ":" + number;
      const auto state = root.text(folder + "state").value_or("");  // "4: ACTIVE"
      part.state = trim(std::string_view(state).substr(state.find(':') + 1));
      part.up = state.find("ACTIVE") != std::string::npos;
      const auto card = "sys/class/infiniband/" + device + "/";
      part.board_id = root.text(card + "board_id").value_or("");
      part.firmware = root.text(card + "fw_ver").value_or("");
      part.link_width = lanes(root.integer(card + "device/current_link_width"));
      part.link_speed = gigatransfers(root.text(card + "device/current_link_speed"));
      if (const auto rate = root.integer(folder + "rate")) part.rate = static_cast<double>(*rate);
      parts.push_back(std::move(part));
    }
  return parts;
}

std::vector<NetworkPart> ethernet_parts(const Root& root) {
  std::vector<NetworkPart> parts;
  for (const std::string& name : root.list("sys/class/net")) {
    const auto folder = "sys/class/net/" + name + "/";
    if (root.text(folder + "type").value_or("1") != "1") continue;  // ARPHRD_ETHER
    NetworkPart part;
    part.name = name;
    part.up = root.text(folder + "operstate") == "up";
    if (const auto speed = root.integer(folder + "speed"); speed && *speed > 0)
      part.rate = static_cast<double>(*speed) / 1000;
    parts.push_back(std::move(part));
  }
  return parts;
}

bool on_network(std::string_view type) {
  static const std::set<std::string_view> types = {"nfs",  "nfs4", "lustre", "gpfs",   "beegfs",
                                                   "ceph", "cifs", "smb3",   "wekafs", "glusterfs"};
  return types.contains(type) || type.starts_with("fuse.");
}

std::vector<MountPart> mount_parts(const Root& root) {
  std::vector<MountPart> parts;
  for (const std::string& line : lines(root.text("proc/mounts").value_or(""))) {
    const auto columns = words(line);
    if (columns.size() < 4) continue;
    const bool read_only = columns[3] == "ro" || columns[3].starts_with("ro,");
    // A later mount hides an earlier one at the same place.
    std::erase_if(parts, [&](const MountPart& one) { return one.place == columns[1]; });
    parts.push_back({columns[0], columns[1], columns[2], !read_only});
  }
  return parts;
}

}  // namespace assay
