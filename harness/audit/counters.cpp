// Error counters that are not zero.
#include "harness/machine/counters.h"

#include "harness/audit/areas.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::audit {

namespace {

struct Rule {
  const char* counter;
  const char* problem;
  std::uint64_t at_least;
  bool above_others = false;  // and ten times as many as the median of the other ports
};

// GPUs' own counters are in gpu.cpp. Thresholds: links go down once or twice while a machine starts; ports count a few
// symbol errors when a cable is plugged in; corrected PCI Express errors are rare on a good link. Packets are lost and
// sent again on a good network, too, on all ports alike.
constexpr Rule rules[] = {{"aer_fatal", "aer-fatal", 1},
                          {"aer_nonfatal", "aer-nonfatal", 1},
                          {"aer_correctable", "aer-corrected", 100},
                          {"ue", "memory-uncorrected", 1},
                          {"ce", "memory-corrected", 1},
                          {"link_downed", "link-flaps", 1},
                          {"carrier_down", "link-flaps", 3},
                          {"carrier_changes", "link-flaps", 6},
                          {"link_error_recovery", "nic-errors", 1},
                          {"symbol_error", "nic-errors", 100},
                          {"port_rcv_errors", "nic-errors", 100},
                          {"local_link_integrity_errors", "nic-errors", 1},
                          {"excessive_buffer_overrun_errors", "nic-errors", 1},
                          {"rx_crc_errors", "nic-errors", 100},
                          {"out_of_sequence", "nic-errors", 1000, true},
                          {"packet_seq_err", "nic-errors", 100, true},
                          {"local_ack_timeout_err", "nic-errors", 100, true},
                          {"implied_nak_seq_err", "nic-errors", 100, true},
                          {"req_transport_retries_exceeded", "nic-errors", 10, true},
                          {"rx_icrc_encapsulated", "nic-errors", 10, true},
                          {"file_system_errors", "filesystem-errors", 1}};

// The median of this counter on other devices; 0 if there are none.
std::uint64_t of_others(const std::vector<ErrorCounter>& counters, const ErrorCounter& counter) {
  std::vector<std::uint64_t> values;
  for (const ErrorCounter& other : counters)
    if (other.name == counter.name && other.device != counter.device) values.push_back(other.value);
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

void audit_counters(const Subject& subject, Report& report) {
  const auto counters = read_error_counters(subject.root, nullptr);
  for (const ErrorCounter& counter : counters)
    for (const Rule& rule : rules)
      if (counter.name == rule.counter && counter.value >= rule.at_least &&
          (!rule.above_others || counter.value / 10 >= of_others(counters, counter)))
        report.add(rule.problem, counter.device, fmt::format("{} {}", counter.name, counter.value));
}

}  // namespace assay::audit
