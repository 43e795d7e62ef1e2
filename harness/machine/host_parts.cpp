#include "harness/machine/host_parts.h"

#include <algorithm>

namespace assay {

std::vector<NetworkPart> infiniband_parts(const Root& root) {
  std::vector<NetworkPart> parts;
  for (const std::string& device : root.list("sys/class/infiniband"))
    for (const std::string& number : root.list("sys/class/infiniband/" + device + "/ports")) {
      const auto folder = "sys/class/infiniband/" + device + "/ports/" + number + "/";
      NetworkPart part;
      part.name = device + ":" + number;
      part.up = root.text(folder + "state").value_or("").find("ACTIVE") != std::string::npos;
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
