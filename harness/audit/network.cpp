// NICs: links that are down, slow or degraded, compared with those of the same kind.
#include "harness/audit/areas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

namespace assay::audit {

namespace {

struct Port {
  std::string name, kind;  // "mlx5_0", "eth0"; PCI ids of the NIC
  bool up = false;
  bool was_up = false;         // since boot or since its counters were cleared
  std::optional<double> rate;  // Gbit/s
  bool few_lanes = false;
  std::string seen;
};

std::string pci_kind(const Root& root, const std::string& pci) {
  const auto folder = "sys/bus/pci/devices/" + pci + "/";
  return root.text(folder + "vendor").value_or("") + ":" + root.text(folder + "device").value_or("");
}

std::vector<Port> infiniband_ports(const Root& root) {
  std::vector<Port> ports;
  for (const std::string& name : root.list("sys/class/infiniband")) {
    const auto pci = nic_address(root, "sys/class/infiniband/" + name);
    for (const std::string& number : root.list("sys/class/infiniband/" + name + "/ports")) {
      const auto folder = "sys/class/infiniband/" + name + "/ports/" + number + "/";
      Port port;
      port.name = number == "1" ? name : name + " port " + number;
      port.kind = pci_kind(root, pci) + " " + root.text(folder + "link_layer").value_or("");
      const auto state = root.text(folder + "state").value_or("");  // "4: ACTIVE"
      if (state.empty()) continue;
      port.up = state.find("ACTIVE") != std::string::npos;
      port.was_up = root.integer(folder + "counters/link_downed").value_or(0) > 0;
      const auto rate = root.text(folder + "rate").value_or("");  // "400 Gb/sec (4X NDR)"
      if (const auto value = to_integer(rate)) port.rate = static_cast<double>(*value);
      port.few_lanes = rate.find("(1X") != std::string::npos || rate.find("(2X") != std::string::npos;
      port.seen = fmt::format("state {}, {}, {}", state, root.text(folder + "phys_state").value_or("unknown"), rate);
      ports.push_back(std::move(port));
    }
  }
  return ports;
}

std::vector<Port> ethernet_ports(const Root& root) {
  std::vector<Port> ports;
  for (const std::string& name : root.list("sys/class/net")) {
    const auto folder = "sys/class/net/" + name + "/";
    const auto pci = nic_address(root, "sys/class/net/" + name);
    if (pci.empty() || root.text(folder + "type").value_or("1") != "1") continue;  // 1: Ethernet (ARPHRD_ETHER)
    Port port;
    port.name = name;
    port.kind = pci_kind(root, pci);
    const auto state = root.text(folder + "operstate").value_or("");
    const auto flags = root.text(folder + "flags").value_or("0x0");
    constexpr unsigned long administratively_up = 0x1;  // IFF_UP
    const bool wanted = (std::strtoul(flags.c_str(), nullptr, 16) & administratively_up) != 0;
    if (state.empty() || !wanted) continue;
    port.up = state == "up" || state == "unknown";
    port.was_up = root.integer(folder + "carrier_up_count").value_or(0) > 0;
    if (const auto speed = root.integer(folder + "speed"); speed && *speed > 0)
      port.rate = static_cast<double>(*speed) / 1000;
    port.seen = "state " + state + (port.rate ? fmt::format(", {:g} Gbit/s", *port.rate) : "");
    ports.push_back(std::move(port));
  }
  return ports;
}

void judge(const std::vector<Port>& ports, Report& report) {
  std::map<std::string, double> best;
  std::map<std::string, int> up;
  for (const Port& port : ports)
    if (port.up) {
      ++up[port.kind];
      best[port.kind] = std::max(best[port.kind], port.rate.value_or(0));
    }
  for (const Port& port : ports) {
    if (!port.up && port.was_up)
      report.add("nic-link-lost", port.name, port.seen);
    else if (!port.up && up.contains(port.kind))
      report.add("nic-down", port.name, fmt::format("{}; {} of its kind are up", port.seen, up[port.kind]));
    else if (port.up && (port.few_lanes || (port.rate && *port.rate < best[port.kind])))
      report.add("nic-slow", port.name,
                 port.few_lanes ? port.seen : fmt::format("{}; others {:g} Gbit/s", port.seen, best[port.kind]));
  }
}

void audit_firmware(const Root& root, Report& report) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> versions;  // kind, version, NICs
  for (const std::string& name : root.list("sys/class/infiniband"))
    if (const auto version = root.text("sys/class/infiniband/" + name + "/fw_ver"); version && !version->empty()) {
      const auto board = root.text("sys/class/infiniband/" + name + "/board_id");
      versions[board.value_or("")][*version].push_back(name);
      report.fact("nic firmware " + name, *version);
    }
  for (const auto& [board, found] : versions) {
    if (found.size() < 2) continue;
    std::string seen;
    for (const auto& [version, nics] : found)
      seen += fmt::format("{}{}: {}", seen.empty() ? "" : "; ", version, fmt::join(nics, " "));
    report.add("nic-firmware", board, seen);
  }
}

}  // namespace

void audit_network(const Subject& subject, Report& report) {
  const auto& root = subject.root;
  const auto ports = infiniband_ports(root);
  judge(ports, report);
  judge(ethernet_ports(root), report);
  audit_firmware(root, report);

  std::set<std::string> cards;
  for (const char* kind : {"sys/class/infiniband", "sys/class/net"})
    for (const std::string& name : root.list(kind))
      if (const auto pci = nic_address(root, std::string(kind) + "/" + name);
          !pci.empty() && cards.insert(pci).second) {
        const auto slow = slow_link(root, pci);
        if (!slow.empty() && subject.machine.system.hypervisor.empty()) report.add("nic-pcie", name, pci + ": " + slow);
      }
  for (const std::string& bond : root.list("proc/net/bonding")) {
    std::string link;
    for (const std::string& line : lines(root.text("proc/net/bonding/" + bond).value_or(""))) {
      if (line.starts_with("Slave Interface:")) link = trim(std::string_view(line).substr(16));
      if (!link.empty() && line.starts_with("MII Status:") && trim(std::string_view(line).substr(11)) != "up")
        report.add("bond-degraded", bond, link + " is " + std::string(trim(std::string_view(line).substr(11))));
    }
  }
  report.fact("nics", std::to_string(ports.size()));
  for (const char* module : {"mlx5_core", "ib_core", "efa", "irdma", "bnxt_en"})
    report.fact(std::string("module ") + module,
                root.text(std::string("sys/module/") + module + "/version").value_or(""));
}

}  // namespace assay::audit
