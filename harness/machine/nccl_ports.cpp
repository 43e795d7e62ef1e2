// The kernel describes the counters in Documentation/ABI/stable/sysfs-class-infiniband; data are in words of 4 bytes.
#include "harness/machine/nccl_ports.h"

#include "harness/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <system_error>

namespace assay {

namespace {

constexpr double bytes_per_word = 4;

std::filesystem::path real_path(const Root& root, const std::string& file) {
  std::error_code failed;
  auto path = std::filesystem::canonical(root.path() / file, failed);
  return failed ? std::filesystem::path() : path;
}

// How many folders two places on the bus share.
std::ptrdiff_t shared_depth(const std::filesystem::path& a, const std::filesystem::path& b) {
  return std::distance(a.begin(), std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first);
}

std::optional<double> bytes_in(const Root& root, const PortId& port, const char* counter) {
  const auto words =
      root.integer(fmt::format("sys/class/infiniband/{}/ports/{}/counters/{}", port.device, port.number, counter));
  if (!words || *words < 0 || *words == std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return bytes_per_word * static_cast<double>(*words);
}

}  // namespace

std::map<std::string, std::string> nccl_conf(const Root& root) {
  std::map<std::string, std::string> settings;
  for (const std::string& line : lines(root.text("etc/nccl.conf").value_or(""))) {
    const auto text = trim(line);
    const auto equals = text.find('=');
    if (text.empty() || text.front() == '#' || equals == text.npos) continue;
    settings[std::string(trim(text.substr(0, equals)))] = trim(text.substr(equals + 1));
  }
  return settings;
}

NcclSetting nccl_setting(const Root& root, const std::string& name) {
  if (const char* const variable = std::getenv(name.c_str())) return {variable, "the environment"};
  const auto settings = nccl_conf(root);
  const auto found = settings.find(name);
  return found != settings.end() ? NcclSetting{found->second, "/etc/nccl.conf"} : NcclSetting{};
}

NamedPorts::NamedPorts(std::string_view text) {
  for (bool* flag : {&others_, &exact_})
    if (*flag = text.starts_with(flag == &others_ ? '^' : '='); *flag) text.remove_prefix(1);
  for (const std::string& word : split_commas(text)) {
    const auto colon = std::min(word.find(':'), word.size());
    if (colon > 0) names_.push_back({word.substr(0, colon), to_integer(word.substr(std::min(colon + 1, word.size())))});
  }
}

std::string NamedPorts::Name::text() const { return device + (port ? fmt::format(":{}", *port) : ""); }

bool NamedPorts::has(const PortId& port) const {
  return std::ranges::any_of(names_, [&](const Name& name) { return fits(name, port); }) != others_;
}

bool NamedPorts::fits(const Name& name, const PortId& port) const {
  return (exact_ ? port.device == name.device : port.device.starts_with(name.device)) &&
         (!name.port || *name.port == port.number);
}

std::vector<PortId> infiniband_ports(const Root& root) {
  std::vector<PortId> ports;
  for (const std::string& device : root.list("sys/class/infiniband"))
    for (const std::string& number : root.list("sys/class/infiniband/" + device + "/ports"))
      ports.push_back({device, to_integer(number).value_or(1)});
  return ports;
}

std::vector<PortBytes> read_port_bytes(const Root& root) {
  std::vector<PortBytes> all;
  for (const PortId& port : infiniband_ports(root)) {
    const auto sent = bytes_in(root, port, "port_xmit_data"), received = bytes_in(root, port, "port_rcv_data");
    if (sent && received) all.push_back({port, *sent, *received});
  }
  return all;
}

std::vector<PortId> nearest_ports(const Root& root, const std::string& gpu_pci) {
  const auto place = gpu_pci.empty() ? std::filesystem::path() : real_path(root, "sys/bus/pci/devices/" + gpu_pci);
  if (place.empty()) return {};
  const NamedPorts named(nccl_setting(root, "NCCL_IB_HCA").value);
  std::vector<PortId> nearest;
  std::ptrdiff_t deepest = 0;
  for (const PortId& port : infiniband_ports(root)) {
    if (!named.empty() && !named.has(port)) continue;
    const auto other = real_path(root, "sys/class/infiniband/" + port.device + "/device");
    if (other.empty()) continue;
    const std::ptrdiff_t depth = shared_depth(place, other);
    if (depth > deepest) nearest.clear();
    if (depth >= deepest) nearest.push_back(port);
    deepest = std::max(deepest, depth);
  }
  return nearest;
}

std::vector<PortBytes> expected_port_bytes(const Root& root, std::span<const GpuBytes> gpus) {
  struct Sharing {
    std::size_t gpus = 0;
    double sent = 0, received = 0;
  };
  std::map<std::vector<PortId>, Sharing> by_nearest;
  for (const GpuBytes& gpu : gpus) {
    const std::vector<PortId> nearest = nearest_ports(root, gpu.pci);
    if (nearest.empty()) continue;
    Sharing& sharing = by_nearest[nearest];
    ++sharing.gpus, sharing.sent += gpu.sent, sharing.received += gpu.received;
  }
  std::map<PortId, PortBytes> expected;
  for (const auto& [ports, sharing] : by_nearest) {
    if (ports.size() > sharing.gpus) continue;
    const auto count = static_cast<double>(ports.size());
    for (const PortId& port : ports) {
      PortBytes& one = expected.try_emplace(port, PortBytes{port}).first->second;
      one.sent += sharing.sent / count, one.received += sharing.received / count;
    }
  }
  std::vector<PortBytes> all;
  for (const auto& [port, bytes] : expected) all.push_back(bytes);
  return all;
}

}  // namespace assay
