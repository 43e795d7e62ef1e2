#include "harness/run/case_errors.h"

#include "harness/core/host.h"

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

void CaseErrors::record(Record& record) {
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
