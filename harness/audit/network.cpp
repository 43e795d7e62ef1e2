// NICs: links that are down, slow or degraded. Only others of the same kind, and whether GPUs depend on a port, tell
// what a port should have: a second port that is not plugged in, or storage at another rate, is as it should be.
#include "harness/audit/areas.h"
#include "harness/core/text.h"
#include "harness/machine/nccl_ports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

namespace assay::audit {

namespace {

struct Port : PortId {
  std::string name, pci;  // "mlx5_0 port 2", "0000:18:00.0"
  std::string kind;       // the card's model, which of its ports, what it speaks: ports that are used alike
  bool compute = false;   // GPUs send by it
  bool up = false;
  bool was_up = false;         // since boot or since its counters were cleared
  std::optional<double> rate;  // Gbit/s
  std::string link;            // "400 Gb/sec (4X NDR)"
  std::string seen;
};

std::string kind_of(const Root& root, const std::string& pci, const std::string& port) {
  const auto folder = "sys/bus/pci/devices/" + pci + "/";
  std::vector<std::string> parts;
  for (const char* name : {"vendor", "device", "subsystem_vendor", "subsystem_device"})
    parts.push_back(root.text(folder + name).value_or(""));
  // One function for each port of a card.
  return fmt::format("{} {} {}", fmt::join(parts, ":"), pci.substr(std::min(pci.rfind('.'), pci.size())), port);
}

std::vector<Port> infiniband_ports(const Root& root, Report& report) {
  std::vector<Port> ports;
  for (const std::string& name : root.list("sys/class/infiniband")) {
    const auto card = "sys/class/infiniband/" + name;
    for (const std::string& number : root.list(card + "/ports")) {
      const auto folder = card + "/ports/" + number + "/";
      Port port;
      port.device = name;
      port.number = to_integer(number).value_or(1);
      port.name = number == "1" ? name : name + " port " + number;
      port.pci = nic_address(root, card);
      port.kind = fmt::format("{} {} {}", kind_of(root, port.pci, number), root.text(card + "/board_id").value_or(""),
                              root.text(folder + "link_layer").value_or(""));
      const auto state = root.text(folder + "state").value_or("");  // "4: ACTIVE"
      if (state.empty()) continue;
      port.up = state.find("ACTIVE") != std::string::npos;
      port.was_up = root.integer(folder + "counters/link_downed").value_or(0) > 0;
      const auto rate = root.text(folder + "rate").value_or("");  // "400 Gb/sec (4X NDR)"
      if (const auto value = to_integer(rate)) port.rate = static_cast<double>(*value);
      port.link = rate;
      port.seen = fmt::format("state {}, {}, {}", state, root.text(folder + "phys_state").value_or("unknown"), rate);
      report.fact("nic state " + port.name, state);
      const auto open = std::min(rate.find('('), rate.size());
      report.fact("nic rate " + port.name, rate.substr(0, open));
      if (open < rate.size()) report.fact("nic width " + port.name, rate.substr(open + 1, rate.find(')') - open - 1));
      ports.push_back(std::move(port));
    }
  }
  return ports;
}

std::vector<Port> ethernet_ports(const Root& root, Report& report) {
  std::vector<Port> ports;
  for (const std::string& name : root.list("sys/class/net")) {
    const auto folder = "sys/class/net/" + name + "/";
    const auto pci = nic_address(root, "sys/class/net/" + name);
    if (pci.empty() || root.text(folder + "type").value_or("1") != "1") continue;  // 1: Ethernet (ARPHRD_ETHER)
    Port port;
    port.name = name;
    port.kind = kind_of(root, pci, root.text(folder + "dev_port").value_or("0"));
    const auto state = root.text(folder + "operstate").value_or("");
    const auto flags = root.text(folder + "flags").value_or("0x0");
    constexpr unsigned long administratively_up = 0x1;  // IFF_UP
    const bool wanted = (std::strtoul(flags.c_str(), nullptr, 16) & administratively_up) != 0;
    if (state.empty() || !wanted) continue;
    port.up = state == "up" || state == "unknown";
    port.was_up = root.integer(folder + "carrier_up_count").value_or(0) > 0;
    if (const auto speed = root.integer(folder + "speed"); speed && *speed > 0)
      port.rate = static_cast<double>(*speed) / 1000;
    const auto rate = port.rate ? fmt::format("{:g} Gbit/s", *port.rate) : "";
    port.seen = "state " + state + (rate.empty() ? "" : ", " + rate);
    report.fact("nic state " + name, state);
    report.fact("nic rate " + name, rate);
    ports.push_back(std::move(port));
  }
  return ports;
}

// The root port or switch by which a device hangs on its processor; empty if there is none between. Absent if the
// device's folder is no link into the tree of bridges, which shows it.
std::optional<std::string> bridge_above(const Root& root, const std::string& pci) {
  std::error_code failed;
  const auto folder = std::filesystem::canonical(root.path() / "sys/bus/pci/devices" / pci, failed)
                          .lexically_relative(std::filesystem::canonical(root.path(), failed));
  bool in_tree = false;  // below "pci0000:15", the root of a tree
  for (const auto& part : folder) {
    const auto name = part.string();
    if (name == pci) break;
    if (last_pci_address(name) == name && !name.empty()) return name;
    in_tree = in_tree || (name.starts_with("pci") && name.size() > 3);
  }
  return in_tree && !failed ? std::optional<std::string>("") : std::nullopt;
}

// Which ports GPUs send by: those that NCCL is told to use, or else those beside a GPU.
struct Compute {
  bool known = false;     // the ports are marked; else it may be any of them
  bool expected = false;  // something depends on them
};

Compute mark_compute(const Subject& subject, std::vector<Port>& ports, Report& report) {
  const auto& [root, machine, now, boot] = subject;
  Compute compute;
  const NcclSetting hca = nccl_setting(root, "NCCL_IB_HCA");
  if (const NamedPorts named(hca.value); !named.empty()) {
    for (Port& port : ports) port.compute = named.has(port);
    const auto missing = named.missing(ports);
    if (!missing.empty())
      report.add("nic-missing", "", fmt::format("{}, in NCCL_IB_HCA of {}", fmt::join(missing, ", "), hca.from));
    const bool here = std::ranges::any_of(ports, &Port::compute);
    compute = {true, here || (!missing.empty() && !machine.gpus.empty())};
  } else if (!machine.gpus.empty()) {
    std::set<std::string> beside;
    bool visible = machine.system.hypervisor.empty();  // a virtual machine shows bridges of its own
    for (const GpuPart& gpu : machine.gpus) {
      const auto bridge = bridge_above(root, gpu.pci);
      visible = visible && bridge;
      if (!bridge.value_or("").empty()) beside.insert(*bridge);
    }
    for (Port& port : ports) {
      port.compute = beside.contains(bridge_above(root, port.pci).value_or(""));
      compute.known = compute.known || port.compute;
    }
    compute.expected = compute.known || !visible;
  }
  std::map<std::string, int> links;
  for (Port& port : ports) {
    if (port.compute) ++links[port.up ? port.link : "down"];
    port.compute = port.compute || !compute.known;
  }
  std::vector<std::string> counted;
  for (const auto& [link, count] : links) counted.push_back(fmt::format("{} x {}", count, link));
  report.fact("nics for gpus", joined(counted));  // none if they are not known
  return compute;
}

void judge_fabric(const Subject& subject, const std::vector<Port>& ports, const Compute& compute, Report& report) {
  const auto& gpus = subject.machine.gpus;
  std::vector<std::string> down;
  for (const Port& port : ports) {
    if (port.compute && port.up) return;
    if (port.compute) down.push_back(port.name + ": " + port.seen);
  }
  const auto seen = down.empty() ? "none of the ports that NCCL_IB_HCA names is here"
                                 : fmt::format("all {}: {}", down.size(), fmt::join(down, "; "));
  const auto in_server = [](const GpuPart& gpu) { return is_data_centre_gpu(gpu.id); };
  if (compute.expected && (compute.known || !down.empty()))
    report.add("fabric-down", "", seen);
  else if (!down.empty() && std::ranges::any_of(gpus, in_server))
    report.add("nic-down", "", seen);
}

// Ports of one kind are compared; where it is known by which ones GPUs send, only these.
void judge(const std::vector<Port>& ports, bool known, Report& report) {
  struct Kind {
    double best = 0;
    int up = 0;
  };
  const auto name = [](const Port& port) { return port.kind + (port.compute ? " compute" : ""); };
  std::map<std::string, Kind> kinds;
  for (const Port& port : ports)
    if (port.up) {
      Kind& kind = kinds[name(port)];
      ++kind.up;
      kind.best = std::max(kind.best, port.rate.value_or(0));
    }
  for (const Port& port : ports) {
    const Kind& alike = kinds[name(port)];
    if (!port.up && port.was_up)
      report.add("nic-link-lost", port.name, port.seen);
    else if (known && !port.compute)
      continue;
    else if (!port.up && port.compute && alike.up > 0)
      report.add(known ? "rail-down" : "nic-down", port.name,
                 fmt::format("{}; {} of its kind are up", port.seen, alike.up));
    else if (port.up && port.rate && *port.rate < alike.best)
      report.add("nic-slow", port.name, fmt::format("{}; others {:g} Gbit/s", port.seen, alike.best));
  }
}

void audit_firmware(const Root& root, Report& report) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> versions;  // kind, version, NICs
  for (const std::string& name : root.list("sys/class/infiniband"))
    if (const auto version = root.text("sys/class/infiniband/" + name + "/fw_ver"); version && !version->empty()) {
      auto board = root.text("sys/class/infiniband/" + name + "/board_id").value_or("");
      if (board.empty()) board = root.text("sys/class/infiniband/" + name + "/hca_type").value_or("");
      if (!board.empty()) versions[board][*version].push_back(name);
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
  auto ports = infiniband_ports(root, report);
  const Compute compute = mark_compute(subject, ports, report);
  judge_fabric(subject, ports, compute, report);
  judge(ports, compute.known, report);
  judge(ethernet_ports(root, report), compute.known, report);
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
