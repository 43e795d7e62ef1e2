#include "harness/run/case_errors.h"

#include "harness/comm/gather.h"
#include "harness/comm/rank_hosts.h"
#include "harness/core/host.h"
#include "harness/record/flags.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {

namespace {

constexpr std::size_t max_flags = 4, max_errors = 64;

// The list of files is made once per process: that of a server with many PCI devices takes milliseconds.
const CounterReader& host_counters() {
  static const CounterReader reader(user_root());
  return reader;
}

std::string text_of(const ErrorCounter& counter) {
  return fmt::format("{} {} {}", counter.device, counter.name, counter.value);
}

}  // namespace

GpuHealth& CaseErrors::begin(const std::string& gpu_uuid, const std::string& gpu_pci, bool first_on_host) {
  gpu_.emplace(gpu_uuid, gpu_pci);
  host_ = first_on_host && host_counters().files() > 0;
  first_on_host_ = first_on_host;
  if (first_on_host) ports_before_ = read_port_bytes(user_root());
  if (host_) host_before_ = host_counters().read();
  return *gpu_;
}

const std::vector<ErrorCounter>& CaseErrors::host_grown() {
  if (!host_grown_) host_grown_ = host_ ? grown(host_before_, host_counters().read()) : std::vector<ErrorCounter>();
  return *host_grown_;
}

void CaseErrors::check_host(Checks& checks) {
  std::vector<std::string> uncorrected;
  double count = 0;
  for (const ErrorCounter& counter : host_grown()) {
    if (!is_uncorrected(counter.name)) continue;
    uncorrected.push_back(fmt::format("{} on {}", text_of(counter), this_host()));
    count += static_cast<double>(counter.value);
  }
  if (!uncorrected.empty()) checks.at_most("device_errors", count, 0, uncorrected);
}

void CaseErrors::expect(const CaseOutputs::Moved& moved, const std::string& gpu_pci, Communicator& comm) {
  const std::vector<std::string> hosts = hosts_of_ranks(comm), gpus = gather_texts(comm, gpu_pci);
  const std::vector<CaseOutputs::Moved> all = gather(comm, moved);
  for (std::size_t rank = 0; rank < hosts.size(); ++rank)
    if (hosts[rank] == hosts[static_cast<std::size_t>(comm.rank())])
      moved_.push_back({gpus[rank], all[rank].sent, all[rank].received});
}

void CaseErrors::record_ports(Record& record) const {
  if (!first_on_host_ || record.world_nodes == 1) return;
  const Root root = user_root();
  const std::vector<PortBytes> expected = expected_port_bytes(root, moved_);
  std::size_t judged = 0;
  for (const PortBytes& now : read_port_bytes(root)) {
    const auto before = std::ranges::find(ports_before_, now.port, &PortBytes::port);
    // Counters that shrank were cleared meanwhile.
    if (before == ports_before_.end() || now.sent < before->sent || now.received < before->received) continue;
    PortTraffic port{this_host(), fmt::format("{} port {}", now.port.device, now.port.number), now.sent - before->sent,
                     now.received - before->received};
    const auto due = std::ranges::find(expected, now.port, &PortBytes::port);
    if (due != expected.end() && due->sent > 0 && due->received > 0) {
      port.share = std::min(port.sent / due->sent, port.received / due->received);
      ++judged;
    }
    if (port.too_little())
      record.flags.push_back(fmt::format("{} {} on {} carried {:.0f} % of what its GPUs moved", flag::idle_port,
                                         port.device, port.host, 100 * *port.share));
    record.ports.push_back(std::move(port));
  }
  const bool gpus = std::ranges::any_of(moved_, [](const GpuBytes& gpu) { return !gpu.pci.empty(); });
  if (judged == 0 && gpus && !infiniband_ports(root).empty()) record.flags.emplace_back(flag::unproven_rails);
}

void CaseErrors::record(Record& record) {
  record_ports(record);
  std::vector<ErrorCounter> all = host_grown();
  if (gpu_)
    for (ErrorCounter& counter : gpu_->counted()) all.push_back(std::move(counter));
  // Counters that may have changed a result come first, so that they are seen.
  std::stable_partition(all.begin(), all.end(),
                        [](const ErrorCounter& counter) { return is_uncorrected(counter.name); });
  const std::string place = record.world_nodes > 1 ? this_host() + " " : "";
  std::size_t flagged = 0;
  for (const ErrorCounter& counter : all) {
    if (record.errors.size() < max_errors)
      record.errors.push_back({this_host(), counter.device, counter.name, counter.value});
    // Links correct some errors at all times; GpuHealth::corrected_link_errors tells when they are many.
    if (counter.name == "nvlink_corrected" || ++flagged > max_flags) continue;
    record.flags.push_back(fmt::format("errors: {}{}", place, text_of(counter)));
  }
  if (flagged > max_flags) record.flags.push_back(fmt::format("errors: {}{} more", place, flagged - max_flags));
}

}  // namespace assay
