// Where the kernel keeps error counters. Its own description: Documentation/ABI (sysfs-class-net-statistics,
// sysfs-class-infiniband, sysfs-bus-pci-devices-aer_stats, sysfs-devices-edac, sysfs-fs-ext4) and
// Documentation/admin-guide/RAS; the RoCE counters are NVIDIA's (MLNX_OFED, "Understanding mlx5 ethtool counters").
#include "harness/machine/counters.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

namespace assay {

namespace {

bool before_in_list(const ErrorCounter& a, const ErrorCounter& b) {
  return std::tie(a.device, a.name) < std::tie(b.device, b.name);
}

// The file's last line "TOTAL_ERR_COR 3"; the lines above it count the kinds of error.
std::optional<std::int64_t> aer_total(std::string_view text) {
  for (const std::string& line : lines(text))
    if (line.starts_with("TOTAL_ERR_"))
      if (const auto parts = words(line); parts.size() == 2) return to_integer(parts[1]);
  return std::nullopt;
}

}  // namespace

CounterReader::CounterReader(const Root& root) : root_(root) {
  find_networks();
  find_infiniband();
  find_pci();
  find_memory();
  find_throttling();
  find_file_systems();
  std::ranges::stable_sort(sources_, [](const Source& a, const Source& b) {
    return std::tie(a.device, a.name) < std::tie(b.device, b.name);
  });
}

void CounterReader::add(std::string file, std::string device, std::string name, Format format) {
  if (root_.exists(file)) sources_.push_back({std::move(file), std::move(device), std::move(name), format});
}

void CounterReader::find_networks() {
  for (const auto& name : root_.list("sys/class/net")) {
    const auto folder = "sys/class/net/" + name + "/";
    if (!root_.exists(folder + "device")) continue;  // bridges, veth and the like
    if (root_.exists(folder + "carrier_down_count"))
      add(folder + "carrier_down_count", name, "carrier_down");
    else
      add(folder + "carrier_changes", name, "carrier_changes");
    for (const char* counter : {"rx_errors", "tx_errors", "rx_crc_errors"})
      add(folder + "statistics/" + counter, name, counter);
  }
}

void CounterReader::find_infiniband() {
  for (const auto& name : root_.list("sys/class/infiniband"))
    for (const auto& port : root_.list("sys/class/infiniband/" + name + "/ports")) {
      const auto folder = "sys/class/infiniband/" + name + "/ports/" + port;
      const auto device = name + " port " + port;
      for (const char* counter :
           {"link_downed", "link_error_recovery", "symbol_error", "port_rcv_errors", "port_xmit_discards",
            "local_link_integrity_errors", "excessive_buffer_overrun_errors"})
        add(folder + "/counters/" + counter, device, counter);
      for (const char* counter : {"out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "implied_nak_seq_err",
                                  "req_transport_retries_exceeded", "rx_icrc_encapsulated"})
        add(folder + "/hw_counters/" + counter, device, counter);
    }
}

void CounterReader::find_pci() {
  for (const auto& address : root_.list("sys/bus/pci/devices"))
    for (const char* kind : {"correctable", "nonfatal", "fatal"})
      add("sys/bus/pci/devices/" + address + "/aer_dev_" + kind, address, std::string("aer_") + kind, Format::aer);
}

void CounterReader::find_memory() {
  for (const auto& name : root_.list("sys/devices/system/edac/mc"))
    if (name.starts_with("mc"))
      for (const char* counter : {"ce", "ue"})
        add("sys/devices/system/edac/mc/" + name + "/" + counter + "_count", name, counter);
}

// Threads of a core show the same counter, and so do CPUs of a package for theirs: each is read once.
void CounterReader::find_throttling() {
  std::set<std::string> cores, packages;
  for (const auto& name : root_.list("sys/devices/system/cpu")) {
    if (!name.starts_with("cpu") || !to_integer(std::string_view(name).substr(3))) continue;
    const auto folder = "sys/devices/system/cpu/" + name + "/";
    if (!root_.exists(folder + "thermal_throttle")) continue;
    const auto package = root_.text(folder + "topology/physical_package_id").value_or(name);
    const auto core = package + "/" + root_.text(folder + "topology/core_id").value_or(name);
    if (cores.insert(core).second) add(folder + "thermal_throttle/core_throttle_count", "cpu", "core_throttle");
    if (packages.insert(package).second)
      add(folder + "thermal_throttle/package_throttle_count", "cpu", "package_throttle");
  }
}

void CounterReader::find_file_systems() {
  for (const auto& name : root_.list("sys/fs/ext4"))
    add("sys/fs/ext4/" + name + "/errors_count", name, "file_system_errors");
}

std::vector<ErrorCounter> CounterReader::read() const {
  std::vector<ErrorCounter> all;
  for (const Source& source : sources_) {
    const auto text = root_.text(source.file);
    if (!text) continue;
    const auto value = source.format == Format::aer ? aer_total(*text) : to_integer(*text);
    if (!value || *value < 0) continue;
    const auto count = static_cast<std::uint64_t>(*value);
    if (!all.empty() && all.back().device == source.device && all.back().name == source.name)
      all.back().value += count;
    else
      all.push_back({source.device, source.name, count});
  }
  return all;
}

std::vector<ErrorCounter> error_counters(const GpuErrorCounts& counts, const std::string& pci) {
  const std::array<std::pair<const char*, std::optional<std::uint64_t>>, 8> named = {
      {{"ecc_corrected", counts.ecc_corrected},
       {"ecc_uncorrected", counts.ecc_uncorrected},
       {"nvlink_corrected", counts.nvlink_corrected},
       {"nvlink_errors", counts.nvlink_errors},
       {"pcie_replays", counts.pcie_replays},
       {"remap_failures", counts.remap_failures},
       {"remap_pending", counts.remap_pending},
       {"rows_remapped", counts.rows_remapped}}};
  std::vector<ErrorCounter> all;
  for (const auto& [name, value] : named)
    if (value) all.push_back({pci, name, *value});
  return all;
}

std::vector<ErrorCounter> read_error_counters(const Root& root, const Nvml* nvml) {
  std::vector<ErrorCounter> all = CounterReader(root).read();
  if (nvml)
    for (const NvmlDevice& device : nvml->devices())
      for (ErrorCounter& counter : error_counters(device.errors(), device.pci())) all.push_back(std::move(counter));
  std::ranges::sort(all, before_in_list);
  return all;
}

std::vector<ErrorCounter> grown(const std::vector<ErrorCounter>& before, const std::vector<ErrorCounter>& after) {
  std::vector<ErrorCounter> more;
  for (const ErrorCounter& now : after) {
    const auto then = std::ranges::lower_bound(before, now, before_in_list);
    if (then == before.end() || before_in_list(now, *then) || now.value <= then->value) continue;
    more.push_back({now.device, now.name, now.value - then->value});
  }
  return more;
}

bool is_uncorrected(std::string_view counter_name) {
  constexpr std::array<std::string_view, 9> names = {"aer_fatal",     "aer_nonfatal",  "ecc_uncorrected",
                                                     "link_downed",   "nvlink_errors", "remap_failures",
                                                     "remap_pending", "rows_remapped", "ue"};
  return std::ranges::find(names, counter_name) != names.end();
}

}  // namespace assay
